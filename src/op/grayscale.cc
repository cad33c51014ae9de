// tested in src/op/image_ops_test.cc
#include "op/color.h"
#include "op/image_step.h"

namespace penstock {
namespace {

/// The number of channels stays the same; they become equal.
class Grayscale final : public ImageStep {
 public:
  explicit Grayscale(const StepArguments& arguments) : chance_(arguments.number("chance")) {
    if (chance_ <= 0 || chance_ > 1)
      arguments.refuse(fmt::format("chance must be in (0, 1], got {}", chance_));
  }
  [[nodiscard]] bool random() const override { return chance_ < 1; }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_color("grayscale", in);
    return in;
  }
  Result<void> apply(Picture& picture, Rng& rng) const override {
    if (chance_ >= 1 || rng.uniform() < chance_) scale_saturation(picture, 0);
    return {};
  }

 private:
  double chance_;
};

}  // namespace

StepKind grayscale_kind() {
  return {"grayscale",
          "Removes the color and keeps the channels. For one channel use decode({.channels = 1}).",
          {{"chance", 1.0, "probability that an image loses its color"}},
          [](const StepArguments& arguments) { return std::make_unique<Grayscale>(arguments); }};
}

}  // namespace penstock
