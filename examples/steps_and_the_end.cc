// 10 batches, and 15 steps asked for: elsewhere the program dies of "End of sequence", or trains on
// the first batch for ever. Here the mistake is told before anything runs, and both things that may
// have been meant are one word away.
#include <fmt/format.h>
#include <penstock/train.h>

namespace ps = penstock;
namespace pt = penstock::train;

int main() {
  const auto samples = ps::Dataset::range(100).map([](const ps::Sample&, ps::Rng& rng) {
    std::vector<float> x(10);
    for (float& value : x) value = static_cast<float>(rng.uniform());
    return ps::Sample::dict({{"x", ps::Tensor::of(x)}, {"y", ps::Tensor::scalar(x[0] - x[9])}});
  });
  torch::manual_seed(1);
  pt::Model model(torch::nn::Sequential(torch::nn::Linear(10, 1)));
  model.compile({.optimizer = pt::adam(0.01), .loss = pt::mean_squared_error()});
  pt::FitOptions options{.epochs = 2, .show = pt::Show::lines};
  options.steps_per_epoch = 15;

  try {
    (void)model.fit(samples.batch(10), options);
    return 1;
  } catch (const ps::ConfigError& error) {
    fmt::print("told at once: {}\n", error.what());
  }
  // Epochs of 15 steps that go on over passes of 10:
  const pt::History longer = model.fit(samples.repeat().batch(10), options);
  // Or one pass an epoch, whatever its length:
  options.steps_per_epoch.reset();
  const pt::History passes = model.fit(samples.batch(10), options);
  return longer.epochs.back().steps == 15 && passes.epochs.back().steps == 10 ? 0 : 1;
}
