// tested in train/tests/model_test.cc
#include <penstock/train/models.h>

#include <fmt/format.h>
#include <penstock/error.h>

namespace penstock::train {
namespace {

namespace nn = torch::nn;

nn::Conv2dOptions conv(std::int64_t in, std::int64_t out, std::int64_t size, std::int64_t stride) {
  return nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false);
}

/// Two convolutions with a skip connection around them.
class BlockImpl : public nn::Cloneable<BlockImpl> {
 public:
  BlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : in_(in), out_(out), stride_(stride) {
    reset();
  }
  void reset() override {
    first_ = register_module("conv1", nn::Conv2d(conv(in_, out_, 3, stride_)));
    first_norm_ = register_module("bn1", BatchNorm(BatchNormOptions(out_)));
    second_ = register_module("conv2", nn::Conv2d(conv(out_, out_, 3, 1)));
    second_norm_ = register_module("bn2", BatchNorm(BatchNormOptions(out_)));
    if (stride_ == 1 && in_ == out_) return;
    around_ = register_module("downsample", nn::Conv2d(conv(in_, out_, 1, stride_)));
    around_norm_ = register_module("downsample_bn", BatchNorm(BatchNormOptions(out_)));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor y = torch::relu(first_norm_->forward(first_->forward(x)));
    y = second_norm_->forward(second_->forward(y));
    return torch::relu(y + (around_ ? around_norm_->forward(around_->forward(x)) : x));
  }

 private:
  std::int64_t in_, out_, stride_;
  nn::Conv2d first_{nullptr}, second_{nullptr}, around_{nullptr};
  BatchNorm first_norm_{nullptr}, second_norm_{nullptr}, around_norm_{nullptr};
};
TORCH_MODULE(Block);

class ResNetImpl : public nn::Cloneable<ResNetImpl> {
 public:
  explicit ResNetImpl(std::int64_t classes) : classes_(classes) { reset(); }
  void reset() override {
    stem_ = register_module("conv1", nn::Conv2d(conv(3, 64, 7, 2)));
    stem_norm_ = register_module("bn1", BatchNorm(BatchNormOptions(64)));
    blocks_.clear();
    std::int64_t in = 64;
    int number = 0;
    for (const std::int64_t out : {64, 128, 256, 512})
      for (const bool first : {true, false}) {
        const std::int64_t stride = first && out != 64 ? 2 : 1;
        blocks_.push_back(
            register_module(fmt::format("layer{}", number++), Block(in, out, stride)));
        in = out;
      }
    head_ = register_module("fc", nn::Linear(512, classes_));
    const torch::NoGradGuard no_grad;
    for (const auto& module : modules(/*include_self=*/false))
      if (const auto* const layer = module->as<nn::Conv2dImpl>())
        nn::init::kaiming_normal_(layer->weight, 0, torch::kFanOut, torch::kReLU);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(stem_norm_->forward(stem_->forward(x)));
    x = torch::max_pool2d(x, 3, 2, 1);
    for (Block& block : blocks_) x = block->forward(x);
    return head_->forward(x.mean({2, 3}));
  }

 private:
  std::int64_t classes_;
  nn::Conv2d stem_{nullptr};
  BatchNorm stem_norm_{nullptr};
  std::vector<Block> blocks_;
  nn::Linear head_{nullptr};
};
TORCH_MODULE(ResNet);

}  // namespace

Network linear_model(std::int64_t classes, const PictureSize& size) {
  return nn::Sequential(nn::Flatten(), nn::Linear(3 * size.height * size.width, classes));
}

Network small_cnn(std::int64_t classes, const PictureSize& size) {
  const auto layer = [](std::int64_t in, std::int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1));
  };
  const auto half = [] { return nn::MaxPool2d(nn::MaxPool2dOptions(2).ceil_mode(true)); };
  const auto halved = [](std::int64_t n) { return (n + 1) / 2; };
  const std::int64_t rows = halved(halved(halved(size.height)));
  const std::int64_t columns = halved(halved(halved(size.width)));
  return nn::Sequential(layer(3, 16), nn::ReLU(), half(), layer(16, 32), nn::ReLU(), half(),
                        layer(32, 64), nn::ReLU(), half(), nn::Flatten(),
                        nn::Linear(64 * rows * columns, 128), nn::ReLU(),
                        Dropout(DropoutOptions(0.2)), nn::Linear(128, classes));
}

Network resnet18(std::int64_t classes) {
  return ResNet(classes);
}

Network model_named(const std::string& name, std::int64_t classes, const PictureSize& size) {
  if (classes < 1 || size.height < 1 || size.width < 1)
    throw ConfigError(fmt::format("model {}: {} classes of images of {} x {}", name, classes,
                                  size.height, size.width));
  if (name == "linear") return linear_model(classes, size);
  if (name == "cnn") return small_cnn(classes, size);
  if (name == "resnet18") return resnet18(classes);
  throw ConfigError(fmt::format("there is no model \"{}\"", name), {},
                    "use linear, cnn or resnet18");
}

}  // namespace penstock::train
