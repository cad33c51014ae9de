// A training loop written by hand: run the step on every replica, reduce the loss, update. The mean
// divides by the samples there are, so that uneven shares and an empty one weigh what they should.
#include <fmt/format.h>
#include <penstock/train.h>

namespace ps = penstock;
namespace pt = penstock::train;

int main() {
  const auto data =
      ps::Dataset::range(103)
          .map([](const ps::Sample&, ps::Rng& rng) {
            std::vector<float> x(8);
            for (float& value : x) value = static_cast<float>(rng.normal());
            const std::int64_t label = x[0] > 0 ? 1 : 0;
            return ps::Sample::dict({{"x", ps::Tensor::of(x)}, {"y", ps::Tensor::scalar(label)}});
          })
          .cache()
          .shuffle({.seed = 7})
          .batch(17);  // 103 = 6 * 17 + 1: the last step has one sample for 4 replicas

  ps::MirroredStrategy strategy({"cpu:0", "cpu:1", "cpu:2", "cpu:3"});
  torch::manual_seed(1);
  pt::Mirrored model(
      strategy,
      torch::nn::Sequential(torch::nn::Linear(8, 32), torch::nn::ReLU(), torch::nn::Linear(32, 2)),
      {.optimizer = pt::adam(0.01)});
  const pt::Loss loss = pt::cross_entropy();

  ps::Feed feed = strategy.distribute(data);
  double last = 0;
  for (int epoch = 0; epoch < 10; ++epoch) {
    double sum = 0;
    std::uint64_t count = 0;
    for (const ps::Step& step : feed) {
      const auto losses = strategy.run(
          [&](ps::Replica& replica, const ps::Batch& share) {
            const auto output = model[replica].forward({pt::tensor_of(share, "x")});
            const auto total = loss.per_sample(output, pt::tensor_of(share, "y")).sum();
            total.backward();
            return ps::Counted<double>{total.item<double>(), share.valid_count()};
          },
          step);
      model.update(step);
      sum += strategy.reduce(ps::Reduce::sum, losses);
      count += step.global_valid();
    }
    last = sum / static_cast<double>(count);
    fmt::print("epoch {}: {} samples, loss {:.4f}\n", epoch, count, last);
  }
  model.check_equal();
  return last < 0.2 ? 0 : 1;
}
