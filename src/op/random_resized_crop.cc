// tested in src/op/image_ops_test.cc
#include <algorithm>
#include <cmath>

#include "op/random_part.h"

namespace penstock {
namespace {

/// A crop of random area and shape, resized: the usual training crop (Szegedy et al., 2015).
class RandomResizedCrop final : public ImageStep {
 public:
  explicit RandomResizedCrop(const StepArguments& arguments)
      : target_{arguments.size("height"), arguments.size("width"), Filter::bilinear,
                arguments.flag("antialias")},
        part_(part_rules(arguments)) {}
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_channels_last("random_resized_crop", in);
    ImageSpec out = in;
    out.height = target_.height;
    out.width = target_.width;
    return out;
  }
  Result<void> apply(Picture& picture, Rng& rng) const override {
    const auto part = draw_part(picture.width(), picture.height(), part_, rng);
    picture.crop(part ? *part : middle_of(picture.width(), picture.height()));
    return picture.resize(target_);
  }

 private:
  /// The largest crop in the center whose shape is allowed.
  [[nodiscard]] Region middle_of(std::int64_t width, std::int64_t height) const {
    const double shape = static_cast<double>(width) / static_cast<double>(height);
    std::int64_t part_width = width;
    std::int64_t part_height = height;
    if (shape < part_.ratio.first) {
      part_height = std::lround(static_cast<double>(width) / part_.ratio.first);
    } else if (shape > part_.ratio.second) {
      part_width = std::lround(static_cast<double>(height) * part_.ratio.second);
    }
    part_width = std::clamp<std::int64_t>(part_width, 1, width);
    part_height = std::clamp<std::int64_t>(part_height, 1, height);
    return {(width - part_width) / 2, (height - part_height) / 2, part_width, part_height};
  }

  ResizeTo target_;
  PartRules part_;
};

}  // namespace

StepKind random_resized_crop_kind() {
  const image::ResizedCropOptions defaults;
  return {"random_resized_crop",
          "Crops at random size, shape and position, and resizes to height and width.",
          {{"height", nullptr, "rows of the result"},
           {"width", nullptr, "columns of the result"},
           {"scale", pair_of(defaults.scale),
            "area of the crop, as a fraction of the image: low and high"},
           {"ratio", pair_of(defaults.ratio), "width over height of the crop: low and high"},
           {"antialias", defaults.antialias, "see resize"}},
          [](const StepArguments& arguments) {
            return std::make_unique<RandomResizedCrop>(arguments);
          }};
}

}  // namespace penstock
