// tested in src/op/image_ops_test.cc
#include "op/picture.h"

#include <algorithm>
#include <cstring>

#include "base/cancelled.h"
#include "base/check.h"
#include "trace/phases.h"

namespace penstock {
namespace {

constexpr std::size_t kQuadBytes = 4 * sizeof(float);
constexpr std::int64_t kRowsUnlooked = 16;  // between two checks of the clock

std::size_t as_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

/// The region of the image itself that corresponds to `region` of its mirror image.
Region unmirrored(Region region, std::int64_t width, std::int64_t height, bool x, bool y) {
  if (x) region.x = width - region.x - region.width;
  if (y) region.y = height - region.y - region.height;
  return region;
}

void run_point(const PointOp& op, float* row, std::size_t count) {
  switch (op.kind) {
    case PointOp::Kind::scale:
      return scale_pixels(row, count, op.a, op.b);
    case PointOp::Kind::clamp:
      return clamp_pixels(row, count, op.a[0], op.a[1]);
    case PointOp::Kind::saturate:
      return saturate_pixels(row, count, op.a[0]);
    case PointOp::Kind::hue:
      return turn_hue(row, count, op.a[0], op.a[1]);
  }
}

}  // namespace

Picture::Picture(std::span<const std::byte> bytes, const ImageInfo& info,
                 const DecodeRequest& request, const Context& context)
    : context_(context),
      bytes_(bytes),
      info_(info),
      request_(request),
      channels_(request.channels == 0 ? info.channels : request.channels),
      dtype_(request.keep_16_bit && info.bits == 16 ? Dtype::u16 : Dtype::u8),
      white_(dtype_ == Dtype::u16 ? 65535.0F : 255.0F),
      region_{0, 0, info.width, info.height} {}

Picture::Picture(const Pixels& pixels, const Context& context)
    : context_(context),
      pixels_(pixels),
      channels_(pixels.channels),
      dtype_(pixels.dtype),
      white_(pixels.dtype == Dtype::u8    ? 255.0F
             : pixels.dtype == Dtype::u16 ? 65535.0F
                                          : 1.0F),
      region_{0, 0, pixels.width, pixels.height} {}

std::int64_t Picture::height() const {
  return resize_ ? window_.height : region_.height;
}
std::int64_t Picture::width() const {
  return resize_ ? window_.width : region_.width;
}

void Picture::crop(const Region& region) {
  PENSTOCK_CHECK_LE(region.x + region.width, width());
  PENSTOCK_CHECK_LE(region.y + region.height, height());
  const Region inside = unmirrored(region, width(), height(), mirror_x_, mirror_y_);
  Region& whole = resize_ ? window_ : region_;
  whole = {whole.x + inside.x, whole.y + inside.y, region.width, region.height};
}

Result<void> Picture::resize(const ResizeTo& target) {
  if (target.height == height() && target.width == width()) return {};
  // The resize must use the current region; a mirror before it equals one after it.
  if (resize_ || !points_.empty())
    if (auto made = pixels(); !made) return std::move(made.failure());
  resize_ = target;
  window_ = {0, 0, target.width, target.height};
  return {};
}

void Picture::flip(bool horizontal, bool vertical) {
  mirror_x_ = mirror_x_ != horizontal;
  mirror_y_ = mirror_y_ != vertical;
}

void Picture::start_from(const FloatImage& image) {
  bytes_ = {};
  pixels_ = {};
  floats_ = image;
  region_ = {0, 0, image.width, image.height};
  resize_.reset();
  window_ = {};
  mirror_x_ = false;
  mirror_y_ = false;
  points_.clear();
}

void Picture::replace(const FloatImage& image) {
  start_from(image);
}

/// An estimate of the memory for decoding `region`.
std::uint64_t Picture::decoded_bytes(const Region& region) const {
  // These formats are unpacked as a whole.
  const bool whole = info_.format == ImageFormat::png || info_.format == ImageFormat::webp;
  const auto pixels = static_cast<std::uint64_t>(whole ? info_.width : region.width) *
                      static_cast<std::uint64_t>(whole ? info_.height : region.height);
  const auto stored = static_cast<std::uint64_t>(info_.channels) * dtype_size(dtype_);
  // Changes of channels and orientation are copies.
  const std::uint64_t copies =
      1 + (info_.channels != channels_ ? 1U : 0U) + (info_.orientation != 1 ? 1U : 0U);
  return pixels * stored * copies;
}

Result<void> Picture::check_time() const {
  if (!deadline_ || std::chrono::steady_clock::now() < *deadline_) return {};
  return Failure{"the ops on this image took longer than the limit",
                 {},
                 "raise time_max of decode if such images are meant to be read"};
}

/// The source's pixels of `region`; a view if they have been decoded.
Result<Pixels> Picture::decoded(const Region& region) {
  if (!bytes_.empty()) {
    DecodeRequest request = request_;
    request.region = region;
    if (!claim(decoded_bytes(region))) return cancelled(0);
    const trace::PhaseTimer timer(trace::Phase::decode);
    auto pixels = decode_image(bytes_, info_, request, context_.scratch);
    if (!deadline_) deadline_ = std::chrono::steady_clock::now() + request.limits.time_max;
    return pixels;
  }
  Pixels view = pixels_;
  view.data += as_size(region.y) * view.stride +
               as_size(region.x) * as_size(view.channels) * dtype_size(view.dtype);
  view.width = region.width;
  view.height = region.height;
  return view;
}

void Picture::finish_row(float* row) const {
  for (const PointOp& op : points_) run_point(op, row, as_size(width()));
}

/// Calls `emit(y, row)` for every row of the result, from the top or from the bottom.
template <typename Emit>
Result<void> Picture::each_row(Emit emit) {
  if (resize_) return resized(ResizeTo(*resize_), emit);
  const std::size_t count = as_size(region_.width);
  float* const row = context_.scratch.array<float>(4 * count);
  const auto place = [&](std::int64_t y) { return mirror_y_ ? region_.height - 1 - y : y; };
  if (floats_.data != nullptr) {
    for (std::int64_t y = 0; y < region_.height; ++y) {
      if (y % kRowsUnlooked == 0)
        if (auto in_time = check_time(); !in_time) return in_time;
      const float* const from = floats_.row(region_.y + y) + 4 * region_.x;
      widen_pixels(reinterpret_cast<const std::byte*>(from), Dtype::f32, 4, count, mirror_x_, row);
      finish_row(row);
      emit(place(y), row);
    }
    return {};
  }
  auto source = decoded(region_);
  if (!source) return std::move(source.failure());
  for (std::int64_t y = 0; y < region_.height; ++y) {
    if (y % kRowsUnlooked == 0)
      if (auto in_time = check_time(); !in_time) return in_time;
    widen_pixels(source->data + as_size(y) * source->stride, source->dtype, source->channels, count,
                 mirror_x_, row);
    finish_row(row);
    emit(place(y), row);
  }
  return {};
}

/// Converts a source of wider values to floats, or a large JPEG to a smaller one, so that only
/// bytes or floats are left to resize.
Result<void> Picture::prepare_resize(const ResizeTo& target) {
  if (fast_scale_ && !bytes_.empty() && info_.format == ImageFormat::jpeg) {
    request_.fast_width = target.width;
    request_.fast_height = target.height;
    auto small = decoded(region_);
    if (!small) return std::move(small.failure());
    bytes_ = {};
    pixels_ = *small;
    region_ = {0, 0, small->width, small->height};
  }
  if (floats_.data != nullptr || dtype_ == Dtype::u8) return {};
  if (!claim(kQuadBytes * as_size(region_.width) * as_size(region_.height))) return cancelled(0);
  auto source = decoded(region_);
  if (!source) return std::move(source.failure());
  const std::size_t width = as_size(source->width);
  const FloatImage wide{context_.scratch.array<float>(4 * width * as_size(source->height)),
                        source->height, source->width};
  for (std::int64_t y = 0; y < wide.height; ++y) {
    if (y % kRowsUnlooked == 0)
      if (auto in_time = check_time(); !in_time) return in_time;
    widen_pixels(source->data + as_size(y) * source->stride, source->dtype, source->channels, width,
                 false, wide.row(y));
  }
  bytes_ = {};
  floats_ = wide;
  region_ = {0, 0, wide.width, wide.height};
  return {};
}

template <typename Emit>
Result<void> Picture::resized(const ResizeTo& target, Emit emit) {
  if (auto done = prepare_resize(target); !done) return done;
  const Axis columns = make_axis({region_.width, target.width, window_.x, window_.width,
                                  target.filter, target.antialias, mirror_x_},
                                 context_.scratch);
  const Axis rows = make_axis({region_.height, target.height, window_.y, window_.height,
                               target.filter, target.antialias, mirror_y_},
                              context_.scratch);
  const auto mix = [&](auto values, auto from, auto weights, auto turn) -> Result<void> {
    using Mixed = decltype(values);
    const std::size_t room = columns.taps * kQuadBytes + 2 * kRowSlackBytes;
    const std::size_t bytes = from.values * sizeof(Mixed) + room;
    auto* const mixed = reinterpret_cast<Mixed*>(context_.scratch.allocate(bytes));
    std::memset(mixed, 0, bytes);
    const auto inputs = context_.scratch.array<decltype(from.row(0))>(rows.taps);
    float* const out = context_.scratch.array<float>(4 * columns.count);
    for (std::size_t y = 0; y < rows.count; ++y) {
      if (auto in_time = check_time(); !in_time) return in_time;
      // Rows past the last one have no weight; any row will do.
      for (std::size_t k = 0; k < rows.taps; ++k)
        inputs[k] = from.row(std::min<std::int64_t>(rows.first[y] + static_cast<std::int64_t>(k),
                                                    rows.source_end - 1));
      mix_rows(inputs, weights + y * rows.taps, rows.taps, from.values, mixed);
      turn(mixed, out);
      finish_row(out);
      emit(static_cast<std::int64_t>(y), out);
    }
    return {};
  };
  const std::size_t width = as_size(columns.source_end - columns.source_first);
  if (floats_.data != nullptr) {
    struct Floats {
      const Picture& picture;
      std::int64_t x;
      std::size_t values;
      const float* row(std::int64_t y) const {
        return picture.floats_.row(picture.region_.y + y) + 4 * x;
      }
    };
    return mix(float{}, Floats{*this, region_.x + columns.source_first, 4 * width}, rows.real,
               [&](const float* mixed, float* out) { mix_columns(mixed, columns, out); });
  }
  auto source =
      decoded({region_.x + columns.source_first, region_.y + rows.source_first,
               columns.source_end - columns.source_first, rows.source_end - rows.source_first});
  if (!source) return std::move(source.failure());
  struct Decoded {
    const Pixels& pixels;
    std::int64_t first;
    std::size_t values;
    const std::uint8_t* row(std::int64_t y) const {
      return reinterpret_cast<const std::uint8_t*>(pixels.data) +
             as_size(y - first) * pixels.stride;
    }
  };
  return mix(std::int16_t{}, Decoded{*source, rows.source_first, width * as_size(source->channels)},
             rows.fixed, [&](const std::int16_t* mixed, float* out) {
               mix_columns(mixed, columns, source->channels, out);
             });
}

Result<FloatImage> Picture::pixels() {
  const bool untouched = floats_.data != nullptr && !resize_ && !mirror_x_ && !mirror_y_ &&
                         points_.empty() && region_ == Region{0, 0, floats_.width, floats_.height};
  if (untouched) return floats_;
  FloatImage made{nullptr, height(), width()};
  if (!claim(kQuadBytes * as_size(made.height) * as_size(made.width))) return cancelled(0);
  made.data = reinterpret_cast<float*>(context_.scratch.allocate(
      kQuadBytes * as_size(made.height) * as_size(made.width) + kRowSlackBytes));
  auto done = each_row([&made](std::int64_t y, const float* row) {
    std::memcpy(made.row(y), row, kQuadBytes * as_size(made.width));
  });
  if (!done) return std::move(done.failure());
  start_from(made);
  return made;
}

Result<void> Picture::store(std::byte* out, Dtype dtype, bool planes) {
  const std::size_t value_bytes = dtype_size(dtype);
  const std::size_t count = as_size(width());
  const std::size_t plane_bytes = planes ? count * as_size(height()) * value_bytes : 0;
  const std::size_t row_bytes = count * value_bytes * (planes ? 1 : as_size(channels_));
  return each_row([=, this](std::int64_t y, const float* row) {
    store_pixels(row, count, channels_, dtype, out + as_size(y) * row_bytes, plane_bytes);
  });
}

}  // namespace penstock
