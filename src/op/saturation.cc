// tested in src/op/image_ops_test.cc
#include "op/colour.h"
#include "op/image_step.h"

namespace penstock {
namespace {

class RandomSaturation final : public ImageStep {
 public:
  explicit RandomSaturation(const StepArguments& arguments)
      : factor_(arguments.number("low"), arguments.number("high")) {
    if (factor_.first < 0 || factor_.first > factor_.second)
      arguments.refuse(fmt::format("low and high must be in order and not negative, got {} and {}",
                                   factor_.first, factor_.second));
    if (factor_.first == 1 && factor_.second == 1)
      arguments.refuse("a factor of 1 changes nothing");
  }
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_colour("random_saturation", in);
    return in;
  }
  Result<void> apply(Picture& picture, Rng& rng) const override {
    scale_saturation(picture, rng.uniform(factor_.first, factor_.second));
    return {};
  }

 private:
  std::pair<double, double> factor_;
};

}  // namespace

StepKind random_saturation_kind() {
  return {
      "random_saturation",
      "Moves colours away from gray, or towards it.",
      {{"low", nullptr, "smallest factor"}, {"high", nullptr, "largest factor; 1 is no change"}},
      [](const StepArguments& arguments) { return std::make_unique<RandomSaturation>(arguments); }};
}

}  // namespace penstock
