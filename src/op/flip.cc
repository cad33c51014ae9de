// tested in src/op/image_ops_test.cc
#include "op/image_step.h"

namespace penstock {
namespace {

class RandomFlip final : public ImageStep {
 public:
  explicit RandomFlip(const StepArguments& arguments)
      : horizontal_(arguments.flag("horizontal")),
        vertical_(arguments.flag("vertical")),
        chance_(arguments.number("chance")) {
    if (!horizontal_ && !vertical_)
      arguments.refuse("neither axis is flipped, so it would do nothing");
    if (chance_ <= 0 || chance_ > 1)
      arguments.refuse(fmt::format("chance must be in (0, 1], got {}", chance_));
  }
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_channels_last("random_flip", in);
    return in;
  }
  Result<void> apply(Picture& picture, Rng& rng) const override {
    const bool horizontal = rng.uniform() < chance_;
    const bool vertical = rng.uniform() < chance_;
    picture.flip(horizontal_ && horizontal, vertical_ && vertical);
    return {};
  }

 private:
  bool horizontal_;
  bool vertical_;
  double chance_;
};

}  // namespace

StepKind random_flip_kind() {
  const image::FlipOptions defaults;
  return {"random_flip",
          "Mirrors the image at random.",
          {{"horizontal", defaults.horizontal, "swap left and right"},
           {"vertical", defaults.vertical, "swap top and bottom"},
           {"chance", defaults.chance, "probability for each axis"}},
          [](const StepArguments& arguments) { return std::make_unique<RandomFlip>(arguments); }};
}

}  // namespace penstock
