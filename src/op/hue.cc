// tested in src/op/image_ops_test.cc
#include "op/color.h"
#include "op/image_step.h"

namespace penstock {
namespace {

class RandomHue final : public ImageStep {
 public:
  explicit RandomHue(const StepArguments& arguments) : delta_(arguments.number("delta")) {
    if (delta_ <= 0 || delta_ > 0.5)
      arguments.refuse(fmt::format("delta must be in (0, 0.5], got {}", delta_),
                       "it is a fraction of the color circle");
  }
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_color("random_hue", in);
    return in;
  }
  Result<void> apply(Picture& picture, Rng& rng) const override {
    turn_hue(picture, rng.uniform(-delta_, delta_));
    return {};
  }

 private:
  double delta_;
};

}  // namespace

StepKind random_hue_kind() {
  return {"random_hue",
          "Rotates all hues by a random angle.",
          {{"delta", nullptr,
            "largest rotation in either direction, as a fraction of the color circle"}},
          [](const StepArguments& arguments) { return std::make_unique<RandomHue>(arguments); }};
}

}  // namespace penstock
