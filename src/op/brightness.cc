// tested in src/op/image_ops_test.cc
#include "op/color.h"
#include "op/image_step.h"

namespace penstock {
namespace {

class RandomBrightness final : public ImageStep {
 public:
  explicit RandomBrightness(const StepArguments& arguments) : delta_(arguments.number("delta")) {
    if (delta_ <= 0 || delta_ > 1)
      arguments.refuse(fmt::format("delta must be in (0, 1], got {}", delta_),
                       "it is a fraction of the range from black to white: 0.2 is 51 of 255");
  }
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_range("random_brightness", in);
    if (in.dtype == Dtype::u8 && delta_ * 255 < 0.5)
      refuse_step("random_brightness",
                  fmt::format("delta {} changes no 8-bit value by one or more", delta_),
                  "delta is a fraction of the range from black to white: 0.2 is 51 of 255");
    return in;
  }
  Result<void> apply(Picture& picture, Rng& rng) const override {
    add_brightness(picture, rng.uniform(-delta_, delta_));
    return {};
  }

 private:
  double delta_;
};

}  // namespace

StepKind random_brightness_kind() {
  return {
      "random_brightness",
      "Adds a random number to all values of an image.",
      {{"delta", nullptr,
        "largest change up or down, as a fraction of the range from black to white"}},
      [](const StepArguments& arguments) { return std::make_unique<RandomBrightness>(arguments); }};
}

}  // namespace penstock
