// tested in src/op/image_ops_test.cc
#include "op/color.h"
#include "op/random_factor.h"

namespace penstock {
namespace {

class RandomContrast final : public RandomFactor {
 public:
  using RandomFactor::RandomFactor;
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_range("random_contrast", in);
    return in;
  }
  Result<void> apply(Picture& picture, Rng& rng) const override {
    return scale_contrast(picture, draw(rng));
  }
};

}  // namespace

StepKind random_contrast_kind() {
  return {"random_contrast", "Moves values away from the image's mean gray, or toward it.",
          RandomFactor::parameters(), [](const StepArguments& arguments) {
            return std::make_unique<RandomContrast>(arguments);
          }};
}

}  // namespace penstock
