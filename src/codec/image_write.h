#pragma once
// Pixels as encoded images.

#include <cstdint>
#include <span>

#include "penstock/io.h"
#include "penstock/result.h"

namespace penstock {

/// Rows of interleaved bytes without gaps: 1 channel (gray) or 3 (RGB); for PNG also 2 and 4, with
/// alpha.
struct PlainPixels {
  std::span<const std::byte> values;
  std::int64_t height = 0;
  std::int64_t width = 0;
  int channels = 3;
};

/// Baseline, with 4:2:0 chroma; `quality` is 1 to 100.
Result<Bytes> encode_jpeg(const PlainPixels& pixels, int quality);
Result<Bytes> encode_png(const PlainPixels& pixels);

}  // namespace penstock
