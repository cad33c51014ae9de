// tested in src/op/image_ops_test.cc
#include <cmath>

#include "op/image_step.h"

namespace penstock {
namespace {

/// A part of random area and shape, resized: the usual training crop (Szegedy et al., 2015).
class RandomResizedCrop final : public ImageStep {
 public:
  explicit RandomResizedCrop(const StepArguments& arguments)
      : target_{arguments.size("height"), arguments.size("width"), Filter::bilinear,
                arguments.flag("antialias")},
        scale_(arguments.range("scale")),
        ratio_(arguments.range("ratio")) {
    if (scale_.first <= 0 || scale_.second > 1)
      arguments.refuse(
          fmt::format("scale must lie in (0, 1], got {} to {}", scale_.first, scale_.second));
    if (ratio_.first <= 0)
      arguments.refuse(fmt::format("ratio must be positive, got {}", ratio_.first));
  }
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_channels_last("random_resized_crop", in);
    ImageSpec out = in;
    out.height = target_.height;
    out.width = target_.width;
    return out;
  }
  Result<void> apply(Picture& picture, Rng& rng) const override {
    if (auto done = picture.crop(part_of(picture.width(), picture.height(), rng)); !done)
      return done;
    return picture.resize(target_);
  }

 private:
  [[nodiscard]] Region part_of(std::int64_t width, std::int64_t height, Rng& rng) const {
    constexpr int kTries = 10;
    const double area = static_cast<double>(width) * static_cast<double>(height);
    for (int i = 0; i < kTries; ++i) {
      const double wanted = area * rng.uniform(scale_.first, scale_.second);
      const double ratio = std::exp(rng.uniform(std::log(ratio_.first), std::log(ratio_.second)));
      const auto part_width = static_cast<std::int64_t>(std::lround(std::sqrt(wanted * ratio)));
      const auto part_height = static_cast<std::int64_t>(std::lround(std::sqrt(wanted / ratio)));
      if (part_width < 1 || part_height < 1 || part_width > width || part_height > height) continue;
      const auto place = [&rng](std::int64_t room) {
        return static_cast<std::int64_t>(rng.integer(static_cast<std::uint64_t>(room) + 1));
      };
      const std::int64_t y = place(height - part_height);
      const std::int64_t x = place(width - part_width);
      return {x, y, part_width, part_height};
    }
    // The largest part in the middle whose shape is allowed.
    const double shape = static_cast<double>(width) / static_cast<double>(height);
    std::int64_t part_width = width;
    std::int64_t part_height = height;
    if (shape < ratio_.first) {
      part_height = std::lround(static_cast<double>(width) / ratio_.first);
    } else if (shape > ratio_.second) {
      part_width = std::lround(static_cast<double>(height) * ratio_.second);
    }
    part_width = std::clamp<std::int64_t>(part_width, 1, width);
    part_height = std::clamp<std::int64_t>(part_height, 1, height);
    return {(width - part_width) / 2, (height - part_height) / 2, part_width, part_height};
  }

  ResizeTo target_;
  std::pair<double, double> scale_;
  std::pair<double, double> ratio_;
};

}  // namespace

StepKind random_resized_crop_kind() {
  return {"random_resized_crop",
          "A part of random size and shape, resized to height and width.",
          {{"height", nullptr, "rows of the result"},
           {"width", nullptr, "columns of the result"},
           {"scale", Json::array({0.08, 1.0}),
            "area of the part, as a fraction of the image: low and high"},
           {"ratio", Json::array({0.75, 4.0 / 3}), "width over height of the part: low and high"},
           {"antialias", true, "as in resize"}},
          [](const StepArguments& arguments) {
            return std::make_unique<RandomResizedCrop>(arguments);
          }};
}

}  // namespace penstock
