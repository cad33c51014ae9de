// Trains a small network here, and writes its first weights, the batches it saw and its last
// weights, for like_torch.py to do the same with plain PyTorch.
#include <fmt/format.h>
#include <penstock/train.h>

#include <fstream>

namespace ps = penstock;
namespace pt = penstock::train;

namespace {

constexpr std::int64_t kSamples = 400;
constexpr std::int64_t kBatch = 8;

ps::Dataset pictures() {
  return ps::Dataset::range(kSamples)
      .map([](const ps::Sample& in, ps::Rng& rng) {
        std::vector<float> pixels(3 * 12 * 12);
        for (float& pixel : pixels) pixel = static_cast<float>(rng.normal());
        const std::int64_t label = in.tensor().item<std::int64_t>() % 4;
        pixels[static_cast<std::size_t>(label)] += 3;
        return ps::Sample::dict(
            {{"image", ps::Tensor::of(std::span<const float>(pixels), {3, 12, 12})},
             {"label", ps::Tensor::scalar(label)}});
      })
      .shuffle({.seed = 5})
      .batch(kBatch);
}

torch::nn::Sequential network() {
  torch::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)),
                               torch::nn::ReLU(), torch::nn::MaxPool2d(2), torch::nn::Flatten(),
                               torch::nn::Linear(8 * 6 * 6, 4));
}

pt::NamedTensors values(const torch::nn::Module& module) {
  pt::NamedTensors found;
  for (const auto& item : module.named_parameters())
    found.emplace_back(item.key(), item.value().detach().clone());
  return found;
}

void write(const std::string& path, const pt::NamedTensors& tensors) {
  std::ofstream(path, std::ios::binary) << pt::encode_tensors(tensors);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string folder = argv[1];
  const bool adam = std::string(argv[2]) == "adam";
  at::set_num_threads(1);
  pt::NamedTensors batches;
  ps::Loader loader(pictures(), {.shares = ps::Shares{}});
  while (const auto batch = loader.next()) {
    batches.emplace_back(fmt::format("image{}", batch->step()), pt::tensor_of(*batch, "image"));
    batches.emplace_back(fmt::format("label{}", batch->step()), pt::tensor_of(*batch, "label"));
  }
  write(folder + "/batches.safetensors", batches);
  const auto net = network();
  write(folder + "/first.safetensors", values(*net));
  pt::Model model(net);
  model.compile({.optimizer = adam ? pt::adam(1e-3) : pt::sgd(0.05, {.momentum = 0.9})});
  const pt::History history = model.fit(pictures(), {.show = pt::Show::nothing});
  write(folder + "/last.safetensors", values(*net));
  fmt::print("{} updates, loss {:.4f}\n", history.iterations, history.epochs[0].train.loss);
  return history.iterations == kSamples / kBatch ? 0 : 1;
}
