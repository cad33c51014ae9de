// tested in src/op/image_ops_test.cc
#include "op/color.h"

#include "base/fault.h"

namespace penstock {
namespace {

void keep_in_range(Picture& picture) {
  picture.point({PointOp::Kind::clamp, {0, picture.white(), 0, 0}, {}});
}

/// The same change of every color channel; alpha, if any, is unchanged.
PointOp scale_colors(const Picture& picture, float factor, float offset) {
  PointOp op{
      PointOp::Kind::scale, {factor, factor, factor, factor}, {offset, offset, offset, offset}};
  const int colors = picture.channels() % 2 == 0 ? picture.channels() - 1 : picture.channels();
  for (int c = colors; c < 4; ++c) {
    op.a[static_cast<std::size_t>(c)] = 1;
    op.b[static_cast<std::size_t>(c)] = 0;
  }
  return op;
}

}  // namespace

void add_brightness(Picture& picture, double delta) {
  // Without this promise 0.2 means 0.2 of one level.
  const float white = PENSTOCK_OFF("image.range") ? 1.0F : picture.white();
  picture.point(scale_colors(picture, 1, static_cast<float>(delta) * white));
  keep_in_range(picture);
}

Result<void> scale_contrast(Picture& picture, double factor) {
  auto made = picture.pixels();
  if (!made) return std::move(made.failure());
  const std::int64_t count = made->width * made->height;
  const bool color = picture.channels() >= 3;
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const float* const pixel = made->data + 4 * i;
    sum += static_cast<double>(color ? 0.299F * pixel[0] + 0.587F * pixel[1] + 0.114F * pixel[2]
                                     : pixel[0]);
  }
  const double mean = count == 0 ? 0 : sum / static_cast<double>(count);
  picture.point(
      scale_colors(picture, static_cast<float>(factor), static_cast<float>(mean * (1 - factor))));
  keep_in_range(picture);
  return {};
}

void scale_saturation(Picture& picture, double factor) {
  picture.point({PointOp::Kind::saturate, {static_cast<float>(factor), 0, 0, 0}, {}});
  keep_in_range(picture);
}

void turn_hue(Picture& picture, double turn) {
  picture.point({PointOp::Kind::hue, {static_cast<float>(turn), picture.white(), 0, 0}, {}});
}

}  // namespace penstock
