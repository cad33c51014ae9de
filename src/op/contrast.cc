// tested in src/op/image_ops_test.cc
#include "op/colour.h"
#include "op/image_step.h"

namespace penstock {
namespace {

class RandomContrast final : public ImageStep {
 public:
  explicit RandomContrast(const StepArguments& arguments)
      : factor_(arguments.number("low"), arguments.number("high")) {
    if (factor_.first < 0 || factor_.first > factor_.second)
      arguments.refuse(fmt::format("low and high must be in order and not negative, got {} and {}",
                                   factor_.first, factor_.second));
    if (factor_.first == 1 && factor_.second == 1)
      arguments.refuse("a factor of 1 changes nothing");
  }
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_range("random_contrast", in);
    return in;
  }
  Result<void> apply(Picture& picture, Rng& rng) const override {
    return scale_contrast(picture, rng.uniform(factor_.first, factor_.second));
  }

 private:
  std::pair<double, double> factor_;
};

}  // namespace

StepKind random_contrast_kind() {
  return {
      "random_contrast",
      "Moves values away from the image's mean gray, or towards it.",
      {{"low", nullptr, "smallest factor"}, {"high", nullptr, "largest factor; 1 is no change"}},
      [](const StepArguments& arguments) { return std::make_unique<RandomContrast>(arguments); }};
}

}  // namespace penstock
