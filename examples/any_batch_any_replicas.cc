// 100 samples by 16 on 2 and 3 replicas, a generator that ends, and take(5): every epoch has the
// steps that were planned, and an end that costs nothing.
#include <fmt/format.h>
#include <penstock/train.h>

namespace ps = penstock;
namespace pt = penstock::train;

ps::Dataset samples(std::int64_t count) {
  return ps::Dataset::range(count).map([](const ps::Sample&, ps::Rng& rng) {
    std::vector<float> x(10);
    for (float& value : x) value = static_cast<float>(rng.uniform());
    const float y = x[0] + x[1] > 1 ? 1.0F : 0.0F;
    return ps::Sample::dict({{"x", ps::Tensor::of(x)}, {"y", ps::Tensor::scalar(y)}});
  });
}

pt::History train(const ps::Dataset& data, std::size_t replicas, pt::FitOptions options = {}) {
  std::vector<std::string> devices;
  for (std::size_t i = 0; i < replicas; ++i) devices.push_back(fmt::format("cpu:{}", i));
  ps::MirroredStrategy strategy(devices);
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(10, 16), torch::nn::ReLU(), torch::nn::Linear(16, 1));
  pt::Model model(net, {.strategy = &strategy});
  model.compile({.optimizer = pt::adam(0.01), .loss = pt::binary_cross_entropy()});
  options.epochs = 3;
  options.show = pt::Show::nothing;
  return model.fit(data, options);
}

int main() {
  int wrong = 0;
  const auto expect = [&](const char* what, const pt::History& history, std::uint64_t steps,
                          std::uint64_t samples) {
    for (const pt::EpochLog& log : history.epochs) {
      fmt::print("{}: epoch {} has {} steps, {} samples, loss {:.6f}\n", what, log.epoch, log.steps,
                 log.train.samples, log.train.loss);
      if (log.steps != steps || log.train.samples != samples) ++wrong;
    }
  };
  for (const std::size_t replicas : {2U, 3U})
    expect("100 by 16", train(samples(100).batch(16), replicas), 7, 100);

  const auto generator = ps::Dataset::from_generator([] {
    return [left = 100]() mutable -> std::optional<ps::Sample> {
      if (left-- == 0) return std::nullopt;
      const auto x = static_cast<float>(left) / 100;
      return ps::Sample::dict({{"x", ps::Tensor::of(std::vector<float>(10, x))},
                               {"y", ps::Tensor::scalar(x > 0.5F ? 1.0F : 0.0F)}});
    };
  });
  expect("a generator that ends", train(generator.batch(16), 2), 7, 100);
  expect("take(5) of its batches", train(samples(100).batch(16).take(5), 2), 5, 80);
  expect("10 steps an epoch", train(samples(100).repeat().batch(16), 3, {.steps_per_epoch = 10}),
         10, 160);
  return wrong;
}
