// tested in src/op/image_ops_test.cc
#include "op/color.h"
#include "op/random_factor.h"

namespace penstock {
namespace {

class RandomSaturation final : public RandomFactor {
 public:
  using RandomFactor::RandomFactor;
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_color("random_saturation", in);
    return in;
  }
  Result<void> apply(Picture& picture, Rng& rng) const override {
    scale_saturation(picture, draw(rng));
    return {};
  }
};

}  // namespace

StepKind random_saturation_kind() {
  return {
      "random_saturation", "Moves colors away from gray, or toward it.", RandomFactor::parameters(),
      [](const StepArguments& arguments) { return std::make_unique<RandomSaturation>(arguments); }};
}

}  // namespace penstock
