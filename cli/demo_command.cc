// `penstock demo`: runs an uneven dataset and proves that no sample was lost.
// tested in tests/interrupt_test.py
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <penstock/penstock.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/thread.h"
#include "command.h"
#include "interrupt.h"

namespace penstock::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct DemoOptions {
  std::uint32_t samples = 100'003;
  std::uint32_t batch = 64;
  std::uint32_t shares = 4;
  std::uint64_t epochs = 1;
  bool endless = false;
  std::uint64_t work_us = 0;  // additional work per sample
  std::optional<unsigned> threads;
  std::string report;
  bool stuck = false;  // the function never returns for a sample in the middle
};

void work_for(std::chrono::microseconds duration) {
  const auto until = Clock::now() + duration;
  while (Clock::now() < until) {
  }
}

/// Some work on each sample: 64 features around a random center.
Dataset describe(const DemoOptions& options) {
  const ElementSpec spec = ElementSpec::dict({{"id", Dtype::i64, {}}, {"x", Dtype::f32, {64}}});
  return Dataset::range(options.samples)
      .shuffle({.seed = 7})
      .map(
          [options](const Sample& in, Rng& rng) {
            if (options.stuck && in.tensor().item<std::int64_t>() == options.samples / 2)
              while (true) sleep_thread(std::chrono::hours(1));
            work_for(std::chrono::microseconds(options.work_us));
            std::vector<float> x(64);
            for (float& value : x) value = static_cast<float>(rng.normal());
            return Sample::dict({{"id", in.tensor()}, {"x", Tensor::of(x)}});
          },
          {.name = "features", .seed = 7, .spec = spec})
      .batch(options.batch)
      .with_options({.name = "demo"});
}

/// What the shares received, to compare with the plan.
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

LoaderOptions loader_options(const DemoOptions& options) {
  LoaderOptions made;
  made.shares = {options.shares, 0, options.shares};
  made.threads = options.threads;
  made.report_dir = options.report;
  return made;
}

/// Takes steps until the epoch ends, or until `steps_max` steps were taken. False if a signal came.
class Consumer {
 public:
  Consumer(const DemoOptions& options, std::uint64_t steps, Interrupt& interrupt)
      : proof_(options.samples, options.shares), progress_(steps), interrupt_(interrupt) {}

  bool take(Loader& loader, std::uint64_t steps_max) {
    const Interrupt::Stops stops(interrupt_, loader);
    const std::uint64_t epoch = loader.epoch();
    try {
      while (interrupt_.signal() == 0 && steps_ < steps_max) {
        const auto step = loader.next_step();
        if (!step) break;
        proof_.add(*step);
        samples_ += step->front().global_valid();
        interrupt_.reached(epoch, ++steps_, samples_);
        progress_.step(steps_, step->front().global_valid());
      }
    } catch (const CancelledError&) {
      return false;
    }
    return interrupt_.signal() == 0;
  }
  [[nodiscard]] bool proved(std::uint64_t steps_planned) const {
    const bool holds = proof_.hold(steps_planned);
    fmt::print("{}\n", holds ? "it holds" : "IT DOES NOT HOLD");
    return holds;
  }

 private:
  Proof proof_;
  Progress progress_;
  Interrupt& interrupt_;
  std::uint64_t steps_ = 0;
  std::uint64_t samples_ = 0;
};

/// Runs the first epoch with a stop in the middle; leaves `resumed` at the start of the next.
std::optional<bool> run_first_epoch(const DemoOptions& options, Loader& resumed,
                                    Interrupt& interrupt) {
  Loader loader(resumed.plan().dataset(), loader_options(options));
  Consumer consumer(options, loader.size(), interrupt);
  if (!consumer.take(loader, loader.size() / 2)) return std::nullopt;
  const std::string state = loader.state().to_json();
  fmt::print("\nstopped in the middle; the state is {} bytes:\n  {}\n", state.size(), state);

  // Another loader resumes there, as after a crash.
  resumed.restore(State::parse(state));
  fmt::print("resumed at epoch {}, step {}\n", resumed.state().epoch, resumed.state().step);
  if (!consumer.take(resumed, UINT64_MAX)) return std::nullopt;
  return consumer.proved(loader.size());
}

/// Returns nullopt if a signal came.
std::optional<bool> run_epochs(const DemoOptions& options, Interrupt& interrupt) {
  Loader loader(describe(options), loader_options(options));
  fmt::print("{}\n", loader.plan().explain());
  std::optional<bool> holds = run_first_epoch(options, loader, interrupt);
  for (std::uint64_t epoch = 1; holds && (options.endless || epoch < options.epochs); ++epoch) {
    Consumer consumer(options, loader.size(), interrupt);
    if (!consumer.take(loader, UINT64_MAX)) return std::nullopt;
    holds = consumer.proved(loader.size()) && *holds;
  }
  return holds;
}

int run_demo(const DemoOptions& options) {
  std::setvbuf(stdout, nullptr, _IOLBF,
               0);  // line buffered: what was printed is out, however the run ends
  Interrupt interrupt;
  const std::optional<bool> holds = run_epochs(options, interrupt);
  if (!holds) interrupt.leave();
  return *holds ? kDone : kFailed;
}

}  // namespace

void add_demo(CLI::App& app, int& code) {
  auto* const verb = app.add_subcommand("demo", "plan, run and verify an uneven dataset");
  static DemoOptions options;
  constexpr std::uint64_t kMost = 1U << 30;
  verb->add_option("--samples", options.samples, "number of samples")
      ->check(whole_number(0, kMost))
      ->capture_default_str();
  verb->add_option("--batch", options.batch, "global batch")
      ->check(whole_number(1, kMost))
      ->capture_default_str();
  verb->add_option("--replicas", options.shares, "shares of each step")
      ->check(whole_number(1, 1U << 20))
      ->capture_default_str();
  verb->add_option("--epochs", options.epochs, "passes over the data")
      ->check(whole_number(1, kMost))
      ->capture_default_str();
  verb->add_flag("--endless", options.endless, "until Ctrl-C");
  verb->add_option("--work-us", options.work_us, "microseconds of work per sample")
      ->check(whole_number(0, kMost));
  verb->add_option("--threads", options.threads,
                   "maximum number of threads; 0: all in the calling thread")
      ->check(whole_number(0, 1U << 16));
  verb->add_option("--report", options.report,
                   "folder for the trace of each epoch, which penstock report FOLDER shows");
  verb->add_flag("--stuck", options.stuck)->group("");  // for tests: not in the help
  verb->callback([&code] { code = run_demo(options); });
}

}  // namespace penstock::cli
