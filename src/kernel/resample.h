#pragma once
// Resizing, one direction at a time: first columns of a few source rows are mixed into one row,
// then neighbors within that row into pixels. Values of 8 bits go through fixed-point numbers:
// weights have 14 fractional bits, mixed rows 6.

#include <cstddef>
#include <cstdint>

#include "sample/scratch.h"

namespace penstock {

enum class Filter : std::uint8_t { nearest, bilinear, bicubic, area };

struct AxisRequest {
  std::int64_t in = 1;     // pixels of the source
  std::int64_t out = 1;    // pixels of the whole result
  std::int64_t first = 0;  // the part of the result that is wanted
  std::int64_t count = 1;
  Filter filter = Filter::bilinear;
  bool antialias = true;  // the filter grows with the source where that is larger than the result
  bool mirrored = false;  // the wanted part comes out backwards
  bool operator==(const AxisRequest&) const = default;
};

/// Which source pixels make each pixel of the result, and their weights. The weights of pixel i are
/// at [i * taps, (i + 1) * taps); those past the end of the source are 0.
struct Axis {
  std::size_t count = 0;
  std::size_t taps = 0;  // even
  const std::int32_t* first = nullptr;
  const std::int16_t* fixed = nullptr;  // 14 fractional bits; each pixel's sum is exactly 1
  const float* real = nullptr;
  std::int64_t source_first = 0;  // what is needed of the source
  std::int64_t source_end = 0;
};
/// Lives as long as the frame of `scratch` around it. A thread remembers the last few that it made:
/// images of one size need the same ones again and again.
Axis make_axis(const AxisRequest& request, Scratch& scratch);

/// How much may be read past the end of a row, and written past the end of a mixed one.
inline constexpr std::size_t kRowSlackBytes = 64;

/// out[i] = the weighted sum of rows[k][i] over k, with 6 fractional bits.
void mix_rows(const std::uint8_t* const* rows, const std::int16_t* weights, std::size_t taps,
              std::size_t values, std::int16_t* out);
/// Pixel i of the result is four floats at out + 4 * i, of which the first `channels` count; from a
/// mixed row whose pixel 0 is source pixel `axis.source_first`.
void mix_columns(const std::int16_t* row, const Axis& axis, int channels, float* out);

/// The same in floats; every pixel has four values.
void mix_rows(const float* const* rows, const float* weights, std::size_t taps, std::size_t values,
              float* out);
void mix_columns(const float* row, const Axis& axis, float* out);

/// What the vector forms must compute.
namespace plain {
void mix_rows(const std::uint8_t* const* rows, const std::int16_t* weights, std::size_t taps,
              std::size_t values, std::int16_t* out);
void mix_columns(const std::int16_t* row, const Axis& axis, int channels, float* out);
}  // namespace plain

}  // namespace penstock
