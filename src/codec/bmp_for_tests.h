#pragma once
// BMP files of every kind, for tests and fuzz targets.

#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "codec/images_for_tests.h"

namespace penstock::made {

struct BmpOptions {
  std::int32_t width = 5;
  std::int32_t height = 3;  // negative: the top row first
  unsigned bits = 24;
  std::uint32_t packing = 0;  // 1 and 2: run-length codes
  std::vector<std::uint32_t> masks = {};
  std::uint32_t header = 40;
  std::uint32_t colors = 0;

  [[nodiscard]] bool rle() const { return packing == 1 || packing == 2; }
  [[nodiscard]] int rows() const { return std::abs(height); }
  /// The number of the color at x, y, if there is a palette.
  [[nodiscard]] unsigned index_at(int x, int y) const {
    return static_cast<unsigned>(x + y * width) % (1U << bits);
  }
};

using BmpColor = std::array<std::uint8_t, 4>;

/// The intended RGB(A) of the pixel at x, y.
inline BmpColor bmp_color(int x, int y) {
  return {static_cast<std::uint8_t>(x * 10 + y), static_cast<std::uint8_t>(200 - y * 7 + x),
          static_cast<std::uint8_t>(x * y + 3), static_cast<std::uint8_t>(50 + x)};
}

inline std::uint32_t masked(std::uint8_t value, std::uint32_t mask) {
  if (mask == 0) return 0;
  const int bits = std::popcount(mask);
  const std::uint32_t level =
      bits <= 8 ? std::uint32_t{value} >> (8 - bits) : std::uint32_t{value} << (bits - 8);
  return level << std::countr_zero(mask);
}

inline std::vector<std::uint32_t> bmp_masks(const BmpOptions& options) {
  if (options.masks.empty() && options.bits == 16) return {0x7c00, 0x3e0, 0x1f};
  return options.masks;
}

/// The same as a reader must return it.
inline BmpColor bmp_pixel(const BmpOptions& options, int x, int y) {
  if (options.bits <= 8) {
    const auto index = static_cast<int>(options.index_at(x, y));
    return bmp_color(index % options.width, index / options.width);
  }
  BmpColor color = bmp_color(x, y);
  const auto masks = bmp_masks(options);
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const std::uint64_t most = masks[i] >> std::countr_zero(masks[i]);
    const std::uint64_t level = masked(color.at(i), masks[i]) >> std::countr_zero(masks[i]);
    color.at(i) = static_cast<std::uint8_t>(level * 255 / most);
  }
  return color;
}

inline void put_little(Values& file, std::uint32_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) file.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

/// One row without compression and without padding.
inline void put_bmp_row(Values& file, const BmpOptions& options, int y) {
  const auto masks = bmp_masks(options);
  const int in_byte = options.bits < 8 ? 8 / static_cast<int>(options.bits) : 1;
  for (int x = 0; x < options.width; ++x) {
    const BmpColor color = bmp_color(x, y);
    if (options.bits <= 8) {
      if (x % in_byte == 0) file.push_back(0);
      const unsigned shift = static_cast<unsigned>(in_byte - 1 - x % in_byte) * options.bits;
      file.back() = static_cast<std::uint8_t>(file.back() | options.index_at(x, y) << shift);
    } else if (masks.empty()) {
      file.insert(file.end(), {color[2], color[1], color[0]});
      if (options.bits == 32) file.push_back(0x77);
    } else {
      std::uint32_t value = 0;
      for (std::size_t i = 0; i < masks.size(); ++i) value |= masked(color.at(i), masks[i]);
      put_little(file, value, options.bits / 8);
    }
  }
}

/// One row as run-length codes: literal if allowed, else runs of one pixel.
inline void put_rle_row(Values& file, const BmpOptions& options, int y) {
  const bool nibbles = options.packing == 2;
  const auto color = [&](int x) { return static_cast<std::uint8_t>(options.index_at(x, y)); };
  const int plain = options.width > 3 ? options.width - 1 : 0;
  if (plain > 0) {
    file.insert(file.end(), {0, static_cast<std::uint8_t>(plain)});
    const std::size_t start = file.size();
    for (int x = 0; x < plain; ++x) {
      if (!nibbles) {
        file.push_back(color(x));
      } else if (x % 2 == 0) {
        file.push_back(static_cast<std::uint8_t>(color(x) << 4U));
      } else {
        file.back() = static_cast<std::uint8_t>(file.back() | color(x));
      }
    }
    if ((file.size() - start) % 2 != 0) file.push_back(0);
  }
  for (int x = plain; x < options.width; ++x)
    file.insert(file.end(), {1, static_cast<std::uint8_t>(nibbles ? color(x) << 4U : color(x))});
}

inline void put_bmp_palette(Values& file, const BmpOptions& options) {
  for (unsigned i = 0; i < (options.colors == 0 ? 1U << options.bits : options.colors); ++i) {
    const BmpColor color =
        bmp_color(static_cast<int>(i) % options.width, static_cast<int>(i) / options.width);
    file.insert(file.end(), {color[2], color[1], color[0]});
    if (options.header != 12) file.push_back(0);
  }
}

inline Values bmp(const BmpOptions& options) {
  Values file = {'B', 'M'};
  const bool core = options.header == 12;
  file.resize(14);  // the offset of the pixels is set below
  put_little(file, options.header, 4);
  put_little(file, static_cast<std::uint32_t>(options.width), core ? 2 : 4);
  put_little(file, static_cast<std::uint32_t>(options.height), core ? 2 : 4);
  put_little(file, 1, 2);
  put_little(file, options.bits, 2);
  if (!core)
    for (const std::uint32_t value : {options.packing, 0U, 2835U, 2835U, options.colors, 0U})
      put_little(file, value, 4);
  for (const std::uint32_t mask : options.masks) put_little(file, mask, 4);
  if (file.size() < 14 + options.header) file.resize(14 + options.header);
  if (options.bits <= 8) put_bmp_palette(file, options);
  const std::size_t start = file.size();
  file[10] = static_cast<std::uint8_t>(start);
  file[11] = static_cast<std::uint8_t>(start >> 8U);
  for (int row = 0; row < options.rows(); ++row) {
    const int y = options.height < 0 ? row : options.rows() - 1 - row;
    const bool last = row + 1 == options.rows();
    if (options.rle()) {
      put_rle_row(file, options, y);
      file.insert(file.end(), {0, static_cast<std::uint8_t>(last ? 1 : 0)});
    } else {
      put_bmp_row(file, options, y);
      while (!last && (file.size() - start) % 4 != 0) file.push_back(0);
    }
  }
  return file;
}

/// The same file with another offset of the pixels in its header.
inline Values with_bmp_offset(Values file, std::uint32_t offset) {
  for (unsigned i = 0; i < 4; ++i) file[10 + i] = static_cast<std::uint8_t>(offset >> (8 * i));
  return file;
}

inline std::vector<BmpOptions> every_bmp() {
  const std::vector<std::uint32_t> rgb = {0xff0000, 0xff00, 0xff};
  const std::vector<std::uint32_t> bgr = {0xff, 0xff00, 0xff0000};
  const std::vector<std::uint32_t> rgba = {0xff0000, 0xff00, 0xff, 0xff000000};
  const std::vector<std::uint32_t> abgr = {0xff000000, 0xff0000, 0xff00, 0xff};
  const std::vector<std::uint32_t> ten = {0x3ff00000, 0xffc00, 0x3ff};
  const std::vector<std::uint32_t> four = {0xf00, 0xf0, 0xf, 0xf000};
  std::vector<BmpOptions> kinds;
  for (const std::int32_t height : {3, -3}) {
    for (const unsigned bits : {1U, 4U, 8U, 16U, 24U, 32U})
      kinds.push_back({.height = height, .bits = bits});
    kinds.push_back({.height = height, .bits = 8, .colors = 16});
    kinds.push_back({.height = height, .bits = 8, .packing = 1});
    kinds.push_back({.height = height, .bits = 4, .packing = 2});
    kinds.push_back({.height = height, .bits = 16, .packing = 3, .masks = {0xf800, 0x7e0, 0x1f}});
    kinds.push_back({.height = height, .bits = 16, .packing = 6, .masks = four});
    kinds.push_back({.height = height, .bits = 32, .packing = 3, .masks = rgb});
    kinds.push_back({.height = height, .bits = 32, .packing = 3, .masks = bgr});
    kinds.push_back({.height = height, .bits = 32, .packing = 3, .masks = ten});
    kinds.push_back({.height = height, .bits = 32, .packing = 3, .masks = rgba, .header = 108});
    kinds.push_back({.height = height, .bits = 32, .packing = 3, .masks = abgr, .header = 124});
  }
  for (const unsigned bits : {1U, 4U, 8U, 24U}) kinds.push_back({.bits = bits, .header = 12});
  return kinds;
}

}  // namespace penstock::made
