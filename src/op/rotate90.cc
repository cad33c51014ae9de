// tested in src/op/image_ops_test.cc
#include <cstring>

#include "op/image_step.h"

namespace penstock {
namespace {

/// Rotates by `turns` quarter turns counterclockwise, as in tf.image.rot90.
Result<void> rotate(Picture& picture, std::int64_t turns, Scratch& scratch) {
  turns = ((turns % 4) + 4) % 4;
  if (turns == 0) return {};
  if (turns == 2) {
    picture.flip(true, true);
    return {};
  }
  auto made = picture.pixels();
  if (!made) return std::move(made.failure());
  const FloatImage& from = *made;
  const FloatImage to{scratch.array<float>(4 * static_cast<std::size_t>(from.width * from.height)),
                      from.width, from.height};
  for (std::int64_t y = 0; y < from.height; ++y)
    for (std::int64_t x = 0; x < from.width; ++x) {
      float* const out =
          turns == 1 ? to.row(from.width - 1 - x) + 4 * y : to.row(x) + 4 * (from.height - 1 - y);
      std::memcpy(out, from.row(y) + 4 * x, 4 * sizeof(float));
    }
  picture.replace(to);
  return {};
}

ImageSpec turned(const char* word, const ImageSpec& in, bool odd) {
  expect_channels_last(word, in);
  ImageSpec out = in;
  if (odd) std::swap(out.height, out.width);
  return out;
}

class Rotate90 final : public ImageStep {
 public:
  explicit Rotate90(const StepArguments& arguments) : turns_(arguments.integer("turns")) {
    if (turns_ % 4 == 0)
      arguments.refuse("turns is a whole number of circles, so it would do nothing");
  }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    return turned("rotate90", in, turns_ % 2 != 0);
  }
  Result<void> apply(Picture& picture, Rng&) const override {
    return rotate(picture, turns_, picture.scratch());
  }

 private:
  std::int64_t turns_;
};

class RandomRotate90 final : public ImageStep {
 public:
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    ImageSpec out = turned("random_rotate90", in, false);
    if (in.height != in.width) out.height = out.width = kUnknown;
    return out;
  }
  Result<void> apply(Picture& picture, Rng& rng) const override {
    return rotate(picture, static_cast<std::int64_t>(rng.integer(4)), picture.scratch());
  }
};

}  // namespace

StepKind rotate90_kind() {
  return {"rotate90",
          "Rotates counterclockwise by quarter turns.",
          {{"turns", 1, "number of quarter turns"}},
          [](const StepArguments& arguments) { return std::make_unique<Rotate90>(arguments); }};
}
StepKind random_rotate90_kind() {
  return {"random_rotate90",
          "Rotates by zero, one, two or three quarter turns.",
          {},
          [](const StepArguments&) { return std::make_unique<RandomRotate90>(); }};
}

}  // namespace penstock
