// tested in src/op/image_ops_test.cc
#include <algorithm>
#include <array>

#include "op/color.h"
#include "op/image_step.h"

namespace penstock {
namespace {

/// Brightness, contrast, saturation and hue, in random order.
class ColorJitter final : public ImageStep {
 public:
  explicit ColorJitter(const StepArguments& arguments) {
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      amounts_[i] = arguments.number(kNames[i]);
      const double most = i == kHue ? 0.5 : 1;
      if (amounts_[i] < 0 || amounts_[i] > most)
        arguments.refuse(
            fmt::format("{} must be in [0, {}], got {}", kNames[i], most, amounts_[i]));
    }
    if (std::ranges::all_of(amounts_, [](double amount) { return amount == 0; }))
      arguments.refuse("all amounts are 0, so it would do nothing");
  }
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    if (amounts_[kSaturation] > 0 || amounts_[kHue] > 0) {
      expect_color("color_jitter", in);
    } else {
      expect_range("color_jitter", in);
    }
    return in;
  }
  Result<void> apply(Picture& picture, Rng& rng) const override {
    std::array<double, 4> drawn{};
    for (double& amount : drawn) amount = rng.uniform(-1, 1);
    std::array<std::size_t, 4> order{0, 1, 2, 3};
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.integer(i)]);
    for (const std::size_t change : order) {
      if (amounts_[change] == 0) continue;
      const double amount = amounts_[change] * drawn[change];
      if (change == kContrast) {
        if (auto done = scale_contrast(picture, 1 + amount); !done) return done;
      } else if (change == kBrightness) {
        add_brightness(picture, amount);
      } else if (change == kSaturation) {
        scale_saturation(picture, 1 + amount);
      } else {
        turn_hue(picture, amount);
      }
    }
    return {};
  }

 private:
  static constexpr std::array<const char*, 4> kNames{"brightness", "contrast", "saturation", "hue"};
  static constexpr std::size_t kBrightness = 0;
  static constexpr std::size_t kContrast = 1;
  static constexpr std::size_t kSaturation = 2;
  static constexpr std::size_t kHue = 3;
  std::array<double, 4> amounts_{};
};

}  // namespace

StepKind color_jitter_kind() {
  const image::JitterOptions defaults;
  return {"color_jitter",
          "Changes brightness, contrast, saturation and hue, in random order.",
          {{"brightness", defaults.brightness, "like delta of random_brightness"},
           {"contrast", defaults.contrast, "factors between 1 - contrast and 1 + contrast"},
           {"saturation", defaults.saturation, "factors between 1 - saturation and 1 + saturation"},
           {"hue", defaults.hue, "like delta of random_hue"}},
          [](const StepArguments& arguments) { return std::make_unique<ColorJitter>(arguments); }};
}

}  // namespace penstock
