// tested in src/op/image_ops_test.cc
#include <algorithm>
#include <cmath>

#include "op/image_step.h"

namespace penstock {
namespace {

/// Paints over a random part (Zhong et al., 2017).
class RandomErasing final : public ImageStep {
 public:
  explicit RandomErasing(const StepArguments& arguments)
      : chance_(arguments.number("chance")),
        scale_(arguments.range("scale")),
        ratio_(arguments.range("ratio")),
        value_(arguments.number("value")) {
    if (chance_ <= 0 || chance_ > 1)
      arguments.refuse(fmt::format("chance must lie in (0, 1], got {}", chance_));
    if (scale_.first <= 0 || scale_.second > 1)
      arguments.refuse(
          fmt::format("scale must lie in (0, 1], got {} to {}", scale_.first, scale_.second));
    if (ratio_.first <= 0)
      arguments.refuse(fmt::format("ratio must be positive, got {}", ratio_.first));
  }
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_channels_last("random_erasing", in);
    return in;
  }
  Result<void> apply(Picture& picture, Rng& rng) const override {
    if (rng.uniform() >= chance_) return {};
    auto made = picture.pixels();
    if (!made) return std::move(made.failure());
    constexpr int kTries = 10;
    const double area = static_cast<double>(made->width) * static_cast<double>(made->height);
    for (int i = 0; i < kTries; ++i) {
      const double wanted = area * rng.uniform(scale_.first, scale_.second);
      const double ratio = std::exp(rng.uniform(std::log(ratio_.first), std::log(ratio_.second)));
      const auto height = static_cast<std::int64_t>(std::lround(std::sqrt(wanted * ratio)));
      const auto width = static_cast<std::int64_t>(std::lround(std::sqrt(wanted / ratio)));
      if (height < 1 || width < 1 || height >= made->height || width >= made->width) continue;
      const auto y = static_cast<std::int64_t>(
          rng.integer(static_cast<std::uint64_t>(made->height - height) + 1));
      const auto x = static_cast<std::int64_t>(
          rng.integer(static_cast<std::uint64_t>(made->width - width) + 1));
      // After normalize there is no white; the value is taken as it is.
      const float fill = static_cast<float>(value_) * (picture.normalized() ? 1 : picture.white());
      for (std::int64_t row = y; row < y + height; ++row)
        std::fill_n(made->row(row) + 4 * x, 4 * width, fill);
      return {};
    }
    return {};
  }

 private:
  double chance_;
  std::pair<double, double> scale_;
  std::pair<double, double> ratio_;
  double value_;
};

}  // namespace

StepKind random_erasing_kind() {
  return {
      "random_erasing",
      "Paints over a random rectangle.",
      {{"chance", 0.5, "of an image to lose a part"},
       {"scale", Json::array({0.02, 0.33}), "area of the part, as a fraction: low and high"},
       {"ratio", Json::array({0.3, 3.3}), "height over width of the part: low and high"},
       {"value", 0.0, "what it holds then: 0 is black, 1 is white"}},
      [](const StepArguments& arguments) { return std::make_unique<RandomErasing>(arguments); }};
}

}  // namespace penstock
