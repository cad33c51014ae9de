#pragma once
// Resizing, one direction at a time: first, a few source rows are mixed into one row, column by
// column; then neighbors within that row into pixels. 8-bit values use fixed-point numbers: weights
// have 14 fractional bits, mixed rows 6.

#include <cstddef>
#include <cstdint>

#include "sample/scratch.h"

namespace penstock {

enum class Filter : std::uint8_t { nearest, bilinear, bicubic, area };

struct AxisRequest {
  std::int64_t in = 1;     // pixels of the source
  std::int64_t out = 1;    // pixels of the whole result
  std::int64_t first = 0;  // the part of the result that is needed
  std::int64_t count = 1;
  Filter filter = Filter::bilinear;
  bool antialias = true;  // the filter widens if the source is larger than the result
  bool mirrored = false;  // the needed part is returned backward
  bool operator==(const AxisRequest&) const = default;
};

/// Which source pixels contribute to each pixel of the result, and their weights. The weights of
/// pixel i are at [i * taps, (i + 1) * taps); those past the end of the source are 0.
struct Axis {
  std::size_t count = 0;
  std::size_t taps = 0;  // even
  const std::int32_t* first = nullptr;
  const std::int16_t* fixed = nullptr;  // 14 fractional bits; each pixel's sum is exactly 1
  const float* real = nullptr;
  std::int64_t source_first = 0;  // the part of the source that is needed
  std::int64_t source_end = 0;
};
/// Valid as long as the surrounding frame of `scratch`. A thread caches the last few, since images
/// of one size need the same ones again and again.
Axis make_axis(const AxisRequest& request, Scratch& scratch);

/// How much may be read past the end of a row, and written past the end of a mixed row.
inline constexpr std::size_t kRowSlackBytes = 64;

/// out[i] = the weighted sum of rows[k][i] over k, with 6 fractional bits.
void mix_rows(const std::uint8_t* const* rows, const std::int16_t* weights, std::size_t taps,
              std::size_t values, std::int16_t* out);
/// Pixel i of the result is four floats at out + 4 * i, of which the first `channels` are used.
/// Pixel 0 of the mixed row is source pixel `axis.source_first`.
void mix_columns(const std::int16_t* row, const Axis& axis, int channels, float* out);

/// The same in floats; every pixel has four values.
void mix_rows(const float* const* rows, const float* weights, std::size_t taps, std::size_t values,
              float* out);
void mix_columns(const float* row, const Axis& axis, float* out);

/// The reference for the vector versions.
namespace plain {
void mix_rows(const std::uint8_t* const* rows, const std::int16_t* weights, std::size_t taps,
              std::size_t values, std::int16_t* out);
void mix_columns(const std::int16_t* row, const Axis& axis, int channels, float* out);
}  // namespace plain

}  // namespace penstock
