// tested in src/op/image_ops_test.cc
#include <algorithm>

#include "op/random_part.h"

namespace penstock {
namespace {

/// Paints over a random rectangle (Zhong et al., 2017).
class RandomErasing final : public ImageStep {
 public:
  explicit RandomErasing(const StepArguments& arguments)
      : chance_(arguments.number("chance")),
        part_(part_rules(arguments)),
        value_(arguments.number("value")) {
    if (chance_ <= 0 || chance_ > 1)
      arguments.refuse(fmt::format("chance must be in (0, 1], got {}", chance_));
    part_.upright = true;
    part_.spare = 1;
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
    const auto part = draw_part(made->width, made->height, part_, rng);
    if (!part) return {};
    // After normalize there is no white; the value is used unchanged.
    const float fill = static_cast<float>(value_) * (picture.normalized() ? 1 : picture.white());
    for (std::int64_t row = part->y; row < part->y + part->height; ++row)
      std::fill_n(made->row(row) + 4 * part->x, 4 * part->width, fill);
    return {};
  }

 private:
  double chance_;
  PartRules part_;
  double value_;
};

}  // namespace

StepKind random_erasing_kind() {
  const image::ErasingOptions defaults;
  return {
      "random_erasing",
      "Paints over a random rectangle.",
      {{"chance", defaults.chance, "probability that an image is changed"},
       {"scale", pair_of(defaults.scale),
        "area of the rectangle, as a fraction of the image: low and high"},
       {"ratio", pair_of(defaults.ratio), "height over width of the rectangle: low and high"},
       {"value", defaults.value, "value of the rectangle: 0 is black, 1 is white"}},
      [](const StepArguments& arguments) { return std::make_unique<RandomErasing>(arguments); }};
}

}  // namespace penstock
