// tested in src/op/image_ops_test.cc
#include "op/random_part.h"

namespace penstock {
namespace {

Failure too_small(const char* word, std::int64_t height, std::int64_t width,
                  const Picture& picture) {
  return {fmt::format("{}: a crop of {} x {} does not fit into an image of {} x {} "
                      "(height x width)",
                      word, height, width, picture.height(), picture.width()),
          {},
          "resize or pad first, or use a smaller part"};
}

/// If sizes are known before running, a crop that does not fit throws here.
void expect_fits(const char* word, const ImageSpec& in, std::int64_t height, std::int64_t width) {
  expect_channels_last(word, in);
  if ((in.height != kUnknown && height > in.height) || (in.width != kUnknown && width > in.width))
    refuse_step(word,
                fmt::format("a crop that ends at {} x {} does not fit into images of {} x {} "
                            "(height x width)",
                            height, width, in.height, in.width),
                "resize or pad first, or use a smaller part");
}

class Crop final : public ImageStep {
 public:
  explicit Crop(const StepArguments& arguments)
      : region_{arguments.integer("x"), arguments.integer("y"), arguments.size("width"),
                arguments.size("height")} {
    if (region_.x < 0 || region_.y < 0)
      arguments.refuse(
          fmt::format("x and y must not be negative, got {} and {}", region_.x, region_.y));
  }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_fits("crop", in, region_.y + region_.height, region_.x + region_.width);
    ImageSpec out = in;
    out.height = region_.height;
    out.width = region_.width;
    return out;
  }
  Result<void> apply(Picture& picture, Rng&) const override {
    if (region_.y + region_.height > picture.height() ||
        region_.x + region_.width > picture.width())
      return too_small("crop", region_.y + region_.height, region_.x + region_.width, picture);
    picture.crop(region_);
    return {};
  }

 private:
  Region region_;
};

class CenterCrop final : public ImageStep {
 public:
  explicit CenterCrop(const StepArguments& arguments)
      : height_(arguments.size("height")), width_(arguments.size("width")) {}
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_fits("center_crop", in, height_, width_);
    ImageSpec out = in;
    out.height = height_;
    out.width = width_;
    return out;
  }
  Result<void> apply(Picture& picture, Rng&) const override {
    if (height_ > picture.height() || width_ > picture.width())
      return too_small("center_crop", height_, width_, picture);
    picture.crop(
        {(picture.width() - width_) / 2, (picture.height() - height_) / 2, width_, height_});
    return {};
  }

 private:
  std::int64_t height_;
  std::int64_t width_;
};

class RandomCrop final : public ImageStep {
 public:
  explicit RandomCrop(const StepArguments& arguments)
      : height_(arguments.size("height")), width_(arguments.size("width")) {}
  [[nodiscard]] bool random() const override { return true; }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_fits("random_crop", in, height_, width_);
    ImageSpec out = in;
    out.height = height_;
    out.width = width_;
    return out;
  }
  Result<void> apply(Picture& picture, Rng& rng) const override {
    if (height_ > picture.height() || width_ > picture.width())
      return too_small("random_crop", height_, width_, picture);
    const std::int64_t y = draw_place(picture.height() - height_, rng);
    const std::int64_t x = draw_place(picture.width() - width_, rng);
    picture.crop({x, y, width_, height_});
    return {};
  }

 private:
  std::int64_t height_;
  std::int64_t width_;
};

template <typename Step>
StepKind kind_of(const char* word, const char* about, std::vector<StepParameter> more = {}) {
  std::vector<StepParameter> parameters{{"height", nullptr, "rows of the crop"},
                                        {"width", nullptr, "columns of the crop"}};
  parameters.insert(parameters.begin(), more.begin(), more.end());
  return {word, about, std::move(parameters),
          [](const StepArguments& arguments) { return std::make_unique<Step>(arguments); }};
}

}  // namespace

StepKind crop_kind() {
  return kind_of<Crop>("crop", "Crops from row y and column x on.",
                       {{"y", nullptr, "first row"}, {"x", nullptr, "first column"}});
}
StepKind center_crop_kind() {
  return kind_of<CenterCrop>("center_crop", "Crops the center.");
}
StepKind random_crop_kind() {
  return kind_of<RandomCrop>("random_crop", "Crops at a random position.");
}

}  // namespace penstock
