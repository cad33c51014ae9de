// A Sequence of 7 batches of 3, trained by fit on two replicas: neither 7 nor 3 is divided by 2,
// and nothing is padded. Each index is asked once in a pass; the weights are those of one device.
#include <fmt/format.h>
#include <penstock/train.h>

namespace ps = penstock;
namespace pt = penstock::train;

class DummySequence : public ps::Sequence {
 public:
  DummySequence(std::int64_t batch_size, std::uint64_t num_batches)
      : batch_size_(batch_size), num_batches_(num_batches) {}
  [[nodiscard]] std::uint64_t size() const override { return num_batches_; }
  ps::Sample get(std::uint64_t index) override {
    ps::Rng rng(1, index);  // the same batch for the same index, whoever asks and when
    std::vector<float> data(static_cast<std::size_t>(batch_size_) * 10);
    for (float& value : data) value = static_cast<float>(rng.uniform());
    std::vector<float> labels;
    for (std::size_t row = 0; row < data.size(); row += 10)
      labels.push_back(data[row] + data[row + 1] > 1 ? 1.0F : 0.0F);
    return ps::Sample::dict({{"x", ps::Tensor::of(std::span<const float>(data), {batch_size_, 10})},
                             {"y", ps::Tensor::of(labels)}});
  }

 private:
  std::int64_t batch_size_;
  std::uint64_t num_batches_;
};

int main() {
  const auto train = [](const std::vector<std::string>& devices) {
    ps::MirroredStrategy strategy(devices);
    torch::manual_seed(1);
    torch::nn::Sequential net(torch::nn::Linear(10, 16), torch::nn::ReLU(),
                              torch::nn::Linear(16, 1));
    pt::Model model(net, {.strategy = &strategy});
    model.compile({.optimizer = pt::adam(0.01),
                   .loss = pt::binary_cross_entropy(),
                   .metrics = {pt::accuracy()}});
    const auto data = ps::Dataset::from_sequence(std::make_shared<DummySequence>(3, 7));
    const pt::History history = model.fit(data, {.epochs = 20, .show = pt::Show::lines});
    return history.epochs.back().train.loss;
  };
  const double one = train({"cpu:0"});
  const double two = train({"cpu:0", "cpu:1"});
  fmt::print("loss after 20 epochs: {:.9f} on one device, {:.9f} on two\n", one, two);
  return std::abs(one - two) < 1e-5 ? 0 : 1;
}
