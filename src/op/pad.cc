// tested in src/op/image_ops_test.cc
#include <algorithm>
#include <cstring>

#include "op/image_step.h"

namespace penstock {
namespace {

class Pad final : public ImageStep {
 public:
  explicit Pad(const StepArguments& arguments)
      : top_(arguments.integer("top")),
        bottom_(arguments.integer("bottom")),
        left_(arguments.integer("left")),
        right_(arguments.integer("right")),
        value_(arguments.number("value")) {
    for (const std::int64_t side : {top_, bottom_, left_, right_})
      if (side < 0 || side > (1 << 16))
        arguments.refuse(fmt::format("sides must be in [0, 65536], got {}", side));
    if (top_ + bottom_ + left_ + right_ == 0)
      arguments.refuse("all sides are 0, so it would do nothing");
    if (value_ < 0 || value_ > 1)
      arguments.refuse(fmt::format("value must be in [0, 1], got {}", value_),
                       "0 is black, 1 is white");
  }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_range("pad", in);
    ImageSpec out = in;
    if (in.height != kUnknown) out.height += top_ + bottom_;
    if (in.width != kUnknown) out.width += left_ + right_;
    return out;
  }
  Result<void> apply(Picture& picture, Rng&) const override {
    auto made = picture.pixels();
    if (!made) return std::move(made.failure());
    const FloatImage& from = *made;
    FloatImage to{nullptr, from.height + top_ + bottom_, from.width + left_ + right_};
    const auto values = static_cast<std::size_t>(4 * to.width * to.height);
    to.data = picture.scratch().array<float>(values);
    std::fill_n(to.data, values, static_cast<float>(value_) * picture.white());
    for (std::int64_t y = 0; y < from.height; ++y)
      std::memcpy(to.row(y + top_) + 4 * left_, from.row(y),
                  static_cast<std::size_t>(from.width) * 4 * sizeof(float));
    picture.replace(to);
    return {};
  }

 private:
  std::int64_t top_;
  std::int64_t bottom_;
  std::int64_t left_;
  std::int64_t right_;
  double value_;
};

}  // namespace

StepKind pad_kind() {
  const image::PadOptions defaults;
  return {"pad",
          "Adds rows and columns around the image.",
          {{"top", defaults.top, "rows above"},
           {"bottom", defaults.bottom, "rows below"},
           {"left", defaults.left, "columns on the left"},
           {"right", defaults.right, "columns on the right"},
           {"value", defaults.value, "value of the padding: 0 is black, 1 is white"}},
          [](const StepArguments& arguments) { return std::make_unique<Pad>(arguments); }};
}

}  // namespace penstock
