#pragma once
// Run-length codes of BMP: RLE8 and RLE4.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/codec.h"

namespace penstock {

struct BmpRle {
  std::span<const std::byte> codes;
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool top_down = false;
  bool nibbles = false;  // RLE4: two colors in a byte
};

enum class RleEnd : std::uint8_t {
  whole,  // complete: up to the end mark, or to the last pixel
  cut,    // the codes end early
  late,   // the deadline passed
};

/// Writes the color numbers of `part`, row by row, to `out`; pixels that the codes skip are left
/// unchanged.
RleEnd unpack_bmp_rle(const BmpRle& rle, const Region& part,
                      std::chrono::steady_clock::time_point deadline, std::byte* out);

}  // namespace penstock
