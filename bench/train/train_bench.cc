// What the trainer costs over a plain LibTorch loop: resnet18, 64 x 64, a global batch of 64 on two
// replicas, against two threads that each train a copy of their own on 32 pictures, with no sums
// and no loader. Interleaved rounds; the median of ratios is held against a limit.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <penstock/train.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/json.h"
#include "base/thread.h"

namespace ps = penstock;
namespace pt = penstock::train;

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kRows = 64;
constexpr std::uint64_t kSteps = 6;
constexpr double kRatioMax = 1.10;
constexpr double kWaitMax = 0.02;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

/// One thread's part of the plain loop.
class PlainReplica {
 public:
  PlainReplica()
      : net_(pt::resnet18(10)), optimizer_(pt::sgd(0.01).make(net_.module().parameters())) {
    x_ = torch::rand({kRows / 2, 3, 64, 64});
    y_ = torch::randint(0, 10, {kRows / 2}, torch::kInt64);
  }
  void run(std::uint64_t steps) {
    at::set_num_threads(1);
    for (std::uint64_t i = 0; i < steps; ++i) {
      optimizer_->zero_grad();
      torch::nn::functional::cross_entropy(net_.forward({x_}), y_).backward();
      optimizer_->step();
    }
  }

 private:
  pt::Network net_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  torch::Tensor x_, y_;
};

double plain(std::vector<PlainReplica>& replicas) {
  const auto began = Clock::now();
  std::vector<ps::Thread> threads;
  for (PlainReplica& one : replicas) threads.emplace_back("plain", [&one] { one.run(kSteps); });
  for (ps::Thread& thread : threads) thread.join();
  return seconds_since(began);
}

ps::Dataset pictures() {
  const std::vector<float> x(256 * 3 * 64 * 64, 0.25F);
  const std::vector<std::int64_t> y(256, 3);
  return ps::Dataset::from_tensor_slices(
             ps::Sample::dict({{"x", ps::Tensor::of(std::span<const float>(x), {256, 3, 64, 64})},
                               {"y", ps::Tensor::of(y)}}))
      .shuffle({.seed = 1})
      .repeat()
      .batch(kRows);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Options {
  int rounds = 7;
  std::string out;  // a JSON file; "": none
  // What the machine cannot say of itself.
  std::string machine;
  std::string date;
  std::string commit;
};

Options parse(int argc, char** argv) {
  Options options;
  const std::map<std::string, std::string*> texts{{"--out", &options.out},
                                                  {"--machine", &options.machine},
                                                  {"--date", &options.date},
                                                  {"--commit", &options.commit}};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto text = texts.find(word);
    if (text != texts.end() && i + 1 < argc) {
      *text->second = argv[++i];
    } else if (const int rounds = std::atoi(argv[i]); rounds > 0) {
      options.rounds = rounds;
    } else {
      throw ps::ConfigError(fmt::format("train_bench: {} is not known", word), {},
                            "train_bench [ROUNDS] [--out FILE --machine TEXT --date DATE "
                            "--commit HASH]");
    }
  }
  return options;
}

void write(const Options& options, const std::vector<double>& ratios,
           const std::vector<double>& waits) {
  const ps::Json result{{"machine", options.machine},
                        {"date", options.date},
                        {"commit", options.commit},
                        {"rounds", options.rounds},
                        {"fit_over_plain", {{"median", median(ratios)}, {"all", ratios}}},
                        {"input_wait", {{"median", median(waits)}, {"all", waits}}},
                        {"limits", {{"fit_over_plain", kRatioMax}, {"input_wait", kWaitMax}}}};
  std::ofstream file(options.out);
  file << result.dump(1) << "\n";
  if (!file.flush()) throw ps::IoError(fmt::format("{} cannot be written", options.out));
}

int run(const Options& bench) {
  std::vector<PlainReplica> replicas(2);
  ps::MirroredStrategy strategy({"cpu:0", "cpu:1"});
  pt::Model model(pt::resnet18(10), {.strategy = &strategy});
  model.compile({.optimizer = pt::sgd(0.01)});
  pt::FitOptions options{.show = pt::Show::nothing};
  options.steps_per_epoch = kSteps;
  const ps::Dataset data = pictures();
  std::vector<double> ratios, waits;
  for (int round = 0; round <= bench.rounds; ++round) {
    const double bare = plain(replicas);
    const pt::History history = model.fit(data, options);
    const double ours = history.epochs[0].seconds;
    if (round == 0) continue;  // warm-up
    ratios.push_back(ours / bare);
    waits.push_back(history.epochs[0].input_wait);
    fmt::print("round {}: plain {:.2f} s, fit {:.2f} s, ratio {:.3f}, input wait {:.2f} %\n", round,
               bare, ours, ours / bare, 100 * waits.back());
  }
  const bool holds = median(ratios) <= kRatioMax && median(waits) <= kWaitMax;
  fmt::print(
      "fit / plain loop: {:.3f} (at most {:.2f})\ninput wait: {:.2f} % (at most {:.0f})\n{}\n",
      median(ratios), kRatioMax, 100 * median(waits), 100 * kWaitMax,
      holds ? "within the limits" : "ABOVE THE LIMITS");
  if (!bench.out.empty()) write(bench, ratios, waits);
  return holds ? 0 : 1;
}

}  // namespace

/// 0: within the limits, 1: above them, 2: wrong arguments.
int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
