// tested in src/op/image_ops_test.cc
#include <algorithm>
#include <array>
#include <cmath>

#include "op/image_step.h"

namespace penstock {
namespace {

Filter filter_of(const StepArguments& arguments) {
  const std::string name = arguments.text("filter");
  if (name == "nearest") return Filter::nearest;
  if (name == "bilinear") return Filter::bilinear;
  if (name == "bicubic") return Filter::bicubic;
  if (name == "area") return Filter::area;
  arguments.refuse(fmt::format("filter must be nearest, bilinear, bicubic or area, got {}", name));
}

class Resize final : public ImageStep {
 public:
  explicit Resize(const StepArguments& arguments)
      : target_{arguments.size("height"), arguments.size("width"), filter_of(arguments),
                arguments.flag("antialias")} {}
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_channels_last("resize", in);
    ImageSpec out = in;
    out.height = target_.height;
    out.width = target_.width;
    return out;
  }
  Result<void> apply(Picture& picture, Rng&) const override { return picture.resize(target_); }

 private:
  ResizeTo target_;
};

/// Keeps the aspect ratio of the image: its shorter side gets the given size.
class ResizeShort final : public ImageStep {
 public:
  explicit ResizeShort(const StepArguments& arguments)
      : size_(arguments.size("size")),
        filter_(filter_of(arguments)),
        antialias_(arguments.flag("antialias")) {}
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_channels_last("resize_short", in);
    ImageSpec out = in;
    const bool known = in.height != kUnknown && in.width != kUnknown;
    const ResizeTo target = known ? target_of(in.height, in.width) : ResizeTo{kUnknown, kUnknown};
    out.height = target.height;
    out.width = target.width;
    return out;
  }
  Result<void> apply(Picture& picture, Rng&) const override {
    return picture.resize(target_of(picture.height(), picture.width()));
  }

 private:
  [[nodiscard]] ResizeTo target_of(std::int64_t height, std::int64_t width) const {
    const std::int64_t shorter = std::min(height, width);
    // Rounds down, as torchvision does.
    const auto scaled = [&](std::int64_t side) {
      return side == shorter ? size_ : std::max<std::int64_t>(1, size_ * side / shorter);
    };
    return {scaled(height), scaled(width), filter_, antialias_};
  }

  std::int64_t size_;
  Filter filter_;
  bool antialias_;
};

std::vector<StepParameter> filter_parameters() {
  const image::ResizeOptions defaults;
  return {{"filter", defaults.filter, "nearest, bilinear, bicubic or area"},
          {"antialias", defaults.antialias,
           "the filter widens with the source, like Pillow; false: like tf.image.resize"}};
}

template <typename Step>
StepKind kind_of(const char* word, const char* about, std::vector<StepParameter> parameters) {
  for (StepParameter& parameter : filter_parameters()) parameters.push_back(std::move(parameter));
  return {word, about, std::move(parameters),
          [](const StepArguments& arguments) { return std::make_unique<Step>(arguments); }};
}

}  // namespace

StepKind resize_kind() {
  return kind_of<Resize>(
      "resize", "Resizes to height and width, for any shape of the image.",
      {{"height", nullptr, "rows of the result"}, {"width", nullptr, "columns of the result"}});
}

StepKind resize_short_kind() {
  return kind_of<ResizeShort>("resize_short",
                              "Resizes the shorter side to size and keeps the aspect ratio.",
                              {{"size", nullptr, "pixels of the shorter side"}});
}

}  // namespace penstock
