// tested in src/op/image_ops_test.cc
#include <algorithm>
#include <cmath>
#include <vector>

#include "op/image_step.h"

namespace penstock {
namespace {

std::vector<float> weights_of(double sigma) {
  const auto reach = std::max(1, static_cast<int>(std::ceil(3 * sigma)));
  std::vector<float> weights;
  double sum = 0;
  for (int i = -reach; i <= reach; ++i) sum += std::exp(-i * i / (2 * sigma * sigma));
  for (int i = -reach; i <= reach; ++i)
    weights.push_back(static_cast<float>(std::exp(-i * i / (2 * sigma * sigma)) / sum));
  return weights;
}

/// Where a pixel outside of [0, size) is taken from: reflected at the edge, which is not repeated.
std::int64_t mirrored(std::int64_t at, std::int64_t size) {
  if (size == 1) return 0;
  const std::int64_t period = 2 * (size - 1);
  at = ((at % period) + period) % period;
  return at < size ? at : period - at;
}

void blur(const FloatImage& image, double sigma, Scratch& scratch) {
  const std::vector<float> weights = weights_of(sigma);
  const auto reach = static_cast<std::int64_t>(weights.size() / 2);
  const FloatImage half{
      scratch.array<float>(static_cast<std::size_t>(4 * image.width * image.height)), image.height,
      image.width};
  const auto count = static_cast<std::size_t>(4 * image.width);
  for (std::int64_t y = 0; y < image.height; ++y) {
    float* const out = half.row(y);
    std::fill_n(out, count, 0.0F);
    for (std::int64_t k = -reach; k <= reach; ++k) {
      const float* const from = image.row(mirrored(y + k, image.height));
      const float weight = weights[static_cast<std::size_t>(k + reach)];
      for (std::size_t i = 0; i < count; ++i) out[i] += weight * from[i];
    }
  }
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x) {
      float sum[4] = {};
      for (std::int64_t k = -reach; k <= reach; ++k) {
        const float* const from = half.row(y) + 4 * mirrored(x + k, image.width);
        const float weight = weights[static_cast<std::size_t>(k + reach)];
        for (int c = 0; c < 4; ++c) sum[c] += weight * from[c];
      }
      std::copy_n(sum, 4, image.row(y) + 4 * x);
    }
}

class GaussianBlur final : public ImageStep {
 public:
  explicit GaussianBlur(const StepArguments& arguments) : chance_(arguments.number("chance")) {
    const auto sigma = arguments.numbers("sigma");
    if (sigma.empty() || sigma.size() > 2 || sigma.front() <= 0 || sigma.back() > 50 ||
        sigma.front() > sigma.back())
      arguments.refuse("sigma must be one number, or low and high, in (0, 50]");
    low_ = sigma.front();
    high_ = sigma.back();
    if (chance_ <= 0 || chance_ > 1)
      arguments.refuse(fmt::format("chance must be in (0, 1], got {}", chance_));
  }
  [[nodiscard]] bool random() const override { return low_ < high_ || chance_ < 1; }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_channels_last("gaussian_blur", in);
    return in;
  }
  Result<void> apply(Picture& picture, Rng& rng) const override {
    const bool wanted = chance_ >= 1 || rng.uniform() < chance_;
    if (!wanted) return {};
    auto made = picture.pixels();
    if (!made) return std::move(made.failure());
    blur(*made, low_ < high_ ? rng.uniform(low_, high_) : low_, picture.scratch());
    return {};
  }

 private:
  double low_ = 1;
  double high_ = 1;
  double chance_;
};

}  // namespace

StepKind gaussian_blur_kind() {
  const image::BlurOptions defaults;
  return {"gaussian_blur",
          "Blurs the image; edges are reflected.",
          {{"sigma", pair_of(defaults.sigma), "in pixels: one number, or low and high"},
           {"chance", defaults.chance, "probability that an image is blurred"}},
          [](const StepArguments& arguments) { return std::make_unique<GaussianBlur>(arguments); }};
}

}  // namespace penstock
