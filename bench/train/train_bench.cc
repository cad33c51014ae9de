// What the trainer costs over a plain LibTorch loop: resnet18, 64 x 64, a global batch of 64 on two
// replicas, against two threads that each train a copy of their own on 32 pictures, with no sums
// and no loader. Interleaved rounds; the median of ratios is what counts.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <penstock/train.h>

#include <algorithm>
#include <chrono>

#include "base/thread.h"

namespace ps = penstock;
namespace pt = penstock::train;

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kRows = 64;
constexpr std::uint64_t kSteps = 6;

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

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::stoi(argv[1]) : 7;
  std::vector<PlainReplica> replicas(2);
  ps::MirroredStrategy strategy({"cpu:0", "cpu:1"});
  pt::Model model(pt::resnet18(10), {.strategy = &strategy});
  model.compile({.optimizer = pt::sgd(0.01)});
  pt::FitOptions options{.show = pt::Show::nothing};
  options.steps_per_epoch = kSteps;
  const ps::Dataset data = pictures();
  std::vector<double> ratios, waits;
  for (int round = 0; round <= rounds; ++round) {
    const double bare = plain(replicas);
    const pt::History history = model.fit(data, options);
    const double ours = history.epochs[0].seconds;
    if (round == 0) continue;  // warm-up
    ratios.push_back(ours / bare);
    waits.push_back(history.epochs[0].input_wait);
    fmt::print("round {}: plain {:.2f} s, fit {:.2f} s, ratio {:.3f}, input wait {:.2f} %\n", round,
               bare, ours, ours / bare, 100 * waits.back());
  }
  fmt::print("fit / plain loop: {:.3f} (wanted at most 1.10)\ninput wait: {:.2f} % (at most 2)\n",
             median(ratios), 100 * median(waits));
  return 0;
}
