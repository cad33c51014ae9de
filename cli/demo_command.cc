// `penstock demo`: the engine at work on an uneven dataset, and the proof that nothing was lost.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <penstock/penstock.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <vector>

#include "command.h"

namespace penstock::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct DemoOptions {
  std::uint32_t samples = 100'003;
  std::uint32_t batch = 64;
  std::uint32_t shares = 4;
};

/// Some work on each sample: 64 features around a drawn centre.
Dataset describe(const DemoOptions& options) {
  const ElementSpec spec = ElementSpec::dict({{"id", Dtype::i64, {}}, {"x", Dtype::f32, {64}}});
  return Dataset::range(options.samples)
      .shuffle({.seed = 7})
      .map(
          [](const Sample& in, Rng& rng) {
            std::vector<float> x(64);
            for (float& value : x) value = static_cast<float>(rng.normal());
            return Sample::dict({{"id", in.tensor()}, {"x", Tensor::of(x)}});
          },
          {.name = "features", .seed = 7, .spec = spec})
      .batch(options.batch)
      .with_options({.name = "demo"});
}

/// What the shares received, to be held against what they should have.
class Proof {
 public:
  Proof(std::uint64_t samples, std::size_t shares)
      : seen_(samples), steps_(shares), rows_(shares) {}

  void add(const std::vector<Batch>& step) {
    std::size_t least = SIZE_MAX;
    std::size_t most = 0;
    for (std::size_t i = 0; i < step.size(); ++i) {
      for (const std::uint64_t id : step[i].sample_id()) ++seen_.at(id);
      steps_.resize(std::max(steps_.size(), step.size()));
      rows_.resize(steps_.size());
      ++steps_[i];
      rows_[i] += step[i].rows();
      least = std::min(least, step[i].rows());
      most = std::max(most, step[i].rows());
    }
    spread_ = std::max(spread_, most - least);
    ++delivered_;
  }

  [[nodiscard]] bool hold(std::uint64_t steps_planned) const {
    std::uint64_t never = 0;
    std::uint64_t again = 0;
    for (const std::uint8_t count : seen_) {
      never += count == 0 ? 1 : 0;
      again += count > 1 ? 1 : 0;
    }
    fmt::print("proof\n  every sample once: {} of {} seen, {} never, {} twice or more\n",
               seen_.size() - never, seen_.size(), never, again);
    fmt::print("  steps: {} planned, {} delivered; per share {}\n", steps_planned, delivered_,
               fmt::join(steps_, ", "));
    fmt::print("  samples per share: {}; in no step did shares differ by more than {}\n",
               fmt::join(rows_, ", "), spread_);
    return never == 0 && again == 0 && delivered_ == steps_planned && spread_ <= 1;
  }

 private:
  std::vector<std::uint8_t> seen_;
  std::vector<std::uint64_t> steps_;
  std::vector<std::uint64_t> rows_;
  std::size_t spread_ = 0;
  std::uint64_t delivered_ = 0;
};

class Progress {
 public:
  explicit Progress(std::uint64_t steps) : steps_(steps) {}
  void step(std::uint64_t done, std::uint64_t samples) {
    samples_ += samples;
    if (done != steps_ && done % 64 != 0) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    const char* const end = isatty(STDOUT_FILENO) != 0 && done != steps_ ? "\r" : "\n";
    if (isatty(STDOUT_FILENO) == 0 && done != steps_) return;
    fmt::print("step {}/{}  {:.2f} s  {:.0f} samples/s{}", done, steps_, seconds,
               static_cast<double>(samples_) / seconds, end);
    std::fflush(stdout);
  }

 private:
  std::uint64_t steps_;
  std::uint64_t samples_ = 0;
  Clock::time_point began_ = Clock::now();
};

int run_demo(const DemoOptions& options) {
  const Dataset dataset = describe(options);
  Loader loader(dataset, {.shares = {options.shares, 0, options.shares}});
  fmt::print("{}\n", loader.plan().explain());
  Proof proof(options.samples, options.shares);
  Progress progress(loader.size());
  const std::uint64_t half = loader.size() / 2;
  for (std::uint64_t done = 0; done < half;) {
    const auto step = loader.next_step();
    proof.add(*step);
    progress.step(++done, step->front().global_valid());
  }
  const std::string state = loader.state().to_json();
  fmt::print("\nstopped in the middle; the state is {} bytes:\n  {}\n", state.size(), state);

  // Another loader, as after a crash, takes it up where the first one was.
  Loader resumed(dataset, {.shares = {options.shares, 0, options.shares}});
  resumed.restore(State::parse(state));
  fmt::print("resumed at epoch {}, step {}\n", resumed.state().epoch, resumed.state().step);
  std::uint64_t done = half;
  while (const auto step = resumed.next_step()) {
    proof.add(*step);
    progress.step(++done, step->front().global_valid());
  }
  const bool holds = proof.hold(loader.size());
  fmt::print("{}\n", holds ? "it holds" : "IT DOES NOT HOLD");
  return holds ? 0 : 1;
}

}  // namespace

void add_demo(CLI::App& app, int& code) {
  auto* const verb = app.add_subcommand("demo", "an uneven dataset, planned, run and proved");
  static DemoOptions options;
  verb->add_option("--samples", options.samples, "number of samples")->capture_default_str();
  verb->add_option("--batch", options.batch, "global batch")->capture_default_str();
  verb->add_option("--replicas", options.shares, "shares of each step")->capture_default_str();
  verb->callback([&code] { code = run_demo(options); });
}

}  // namespace penstock::cli
