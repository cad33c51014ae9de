#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "codec/codec.h"
#include "codec/image_properties.h"
#include "codec/made_images.h"

namespace penstock {
namespace {

using made::Values;
using testing::HasSubstr;

struct BmpOptions {
  std::int32_t width = 5;
  std::int32_t height = 3;  // negative: the top row first
  unsigned bits = 24;
  std::uint32_t packing = 0;
  std::vector<std::uint32_t> masks = {};
  std::uint32_t header = 40;
  std::uint32_t colors = 0;
};

/// RGB(A) of the pixel at x, y.
std::array<std::uint8_t, 4> color_at(int x, int y) {
  return {static_cast<std::uint8_t>(x * 10 + y), static_cast<std::uint8_t>(200 - y * 7 + x),
          static_cast<std::uint8_t>(x * y + 3), static_cast<std::uint8_t>(50 + x)};
}

void put(Values& file, std::uint32_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) file.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

void put_pixel(Values& file, const BmpOptions& options, int x, int y) {
  const auto color = color_at(x, y);
  if (options.bits == 8) return put(file, static_cast<std::uint32_t>(x + y * options.width), 1);
  if (options.masks.empty()) {
    put(file, color[2], 1);
    put(file, color[1], 1);
    put(file, color[0], 1);
    if (options.bits == 32) put(file, 0x77, 1);
    return;
  }
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < options.masks.size(); ++i)
    value |= color.at(i) * (options.masks[i] & ~(options.masks[i] << 1U));
  put(file, value, 4);
}

Values bmp(const BmpOptions& options) {
  Values file = {'B', 'M'};
  const bool core = options.header == 12;
  const int height = std::abs(options.height);
  file.resize(14);  // where the pixels begin is set below
  put(file, options.header, 4);
  put(file, static_cast<std::uint32_t>(options.width), core ? 2 : 4);
  put(file, static_cast<std::uint32_t>(options.height), core ? 2 : 4);
  put(file, 1, 2);
  put(file, options.bits, 2);
  if (!core) {
    put(file, options.packing, 4);
    put(file, 0, 4);
    put(file, 2835, 4);
    put(file, 2835, 4);
    put(file, options.colors, 4);
    put(file, 0, 4);
  }
  for (const std::uint32_t mask : options.masks) put(file, mask, 4);
  if (file.size() < 14 + options.header) file.resize(14 + options.header);
  if (options.bits == 8) {
    for (unsigned i = 0; i < (options.colors == 0 ? 256 : options.colors); ++i) {
      const auto color =
          color_at(static_cast<int>(i) % options.width, static_cast<int>(i) / options.width);
      put(file, color[2], 1);
      put(file, color[1], 1);
      put(file, color[0], 1);
      if (!core) put(file, 0, 1);
    }
  }
  file[10] = static_cast<std::uint8_t>(file.size());
  file[11] = static_cast<std::uint8_t>(file.size() >> 8U);
  for (int row = 0; row < height; ++row) {
    const int y = options.height < 0 ? row : height - 1 - row;
    for (int x = 0; x < options.width; ++x) put_pixel(file, options, x, y);
    while (row + 1 < height && (file.size() - file[10] - 256U * file[11]) % 4 != 0)
      file.push_back(0);
  }
  return file;
}

std::vector<BmpOptions> every_kind() {
  const std::vector<std::uint32_t> rgb = {0xff0000, 0xff00, 0xff};
  const std::vector<std::uint32_t> bgr = {0xff, 0xff00, 0xff0000};
  const std::vector<std::uint32_t> rgba = {0xff0000, 0xff00, 0xff, 0xff000000};
  const std::vector<std::uint32_t> abgr = {0xff000000, 0xff0000, 0xff00, 0xff};
  std::vector<BmpOptions> kinds;
  for (const std::int32_t height : {3, -3}) {
    kinds.push_back({.height = height});
    kinds.push_back({.height = height, .bits = 32});
    kinds.push_back({.height = height, .bits = 8});
    kinds.push_back({.height = height, .bits = 8, .colors = 16});
    kinds.push_back({.height = height, .bits = 32, .packing = 3, .masks = rgb});
    kinds.push_back({.height = height, .bits = 32, .packing = 3, .masks = bgr});
    kinds.push_back({.height = height, .bits = 32, .packing = 3, .masks = rgba, .header = 108});
    kinds.push_back({.height = height, .bits = 32, .packing = 3, .masks = abgr, .header = 124});
  }
  kinds.push_back({.header = 12});
  kinds.push_back({.bits = 8, .header = 12});
  return kinds;
}

TEST(BmpTest, EveryKindGivesItsColours) {
  for (const BmpOptions& options : every_kind()) {
    const auto decoded = made::decode(bmp(options), {.channels = 0});
    ASSERT_EQ(decoded.message, "");
    const bool alpha = options.masks.size() == 4;
    ASSERT_EQ(decoded.pixels.channels, alpha ? 4 : 3);
    ASSERT_EQ(decoded.pixels.width, 5);
    ASSERT_EQ(decoded.pixels.height, 3);
    const auto channels = static_cast<std::size_t>(decoded.pixels.channels);
    for (std::size_t i = 0; i < decoded.values.size(); ++i) {
      const auto pixel = static_cast<int>(i / channels);
      ASSERT_EQ(decoded.values[i], color_at(pixel % 5, pixel / 5).at(i % channels))
          << options.bits << " bits, header " << options.header << ", value " << i;
    }
  }
}

TEST(BmpTest, ARegionIsThatPartOfTheImage) {
  for (const BmpOptions& options : every_kind())
    made::expect_regions_equal_crops(bmp(options), {.channels = 0});
}

TEST(BmpTest, NumbersBeyondThePaletteAreBlack) {
  const auto decoded = made::decode(bmp({.bits = 8, .colors = 7}));
  ASSERT_EQ(decoded.message, "");
  EXPECT_EQ(Values(decoded.values.end() - 3, decoded.values.end()), (Values{0, 0, 0}));
}

TEST(BmpTest, NoTruncationPasses) {
  for (const BmpOptions& options : every_kind()) made::expect_truncations_fail(bmp(options));
}

TEST(BmpTest, FlippedBytesDoNoHarm) {
  for (const BmpOptions& options : every_kind()) made::expect_flips_do_no_harm(bmp(options), 300);
}

TEST(BmpTest, WhatCannotBeReadIsNamedWithARemedy) {
  const auto message = [](const BmpOptions& options) {
    const auto decoded = made::decode(bmp(options));
    EXPECT_THAT(decoded.remedy, HasSubstr("convert it"));
    return decoded.message;
  };
  EXPECT_THAT(message({.bits = 8, .packing = 1}), HasSubstr("compressed (RLE)"));
  EXPECT_THAT(message({.bits = 24, .packing = 4}), HasSubstr("compression 4"));
  EXPECT_THAT(message({.bits = 16}), HasSubstr("16 bits per pixel"));
  EXPECT_THAT(message({.bits = 32, .packing = 3, .masks = {0xf800, 0x7e0, 0x1f}}),
              HasSubstr("colour mask of 0x0000f800"));
  EXPECT_THAT(message({.bits = 32, .packing = 3, .masks = {0xff, 0xff, 0xff}}),
              HasSubstr("colour mask"));
}

TEST(BmpTest, HugeClaimsAreRefusedBeforeMemoryIsTaken) {
  Values file = bmp({});
  for (const std::size_t at : {18U, 22U}) file[at + 3] = 0x7f;
  EXPECT_THAT(made::decode(file).message, HasSubstr("more than the limit"));
  EXPECT_THAT(made::decode(file, {.limits = {.pixels_max = ~std::uint64_t{0}}}).message,
              HasSubstr("in the middle of its pixel data"));
}

}  // namespace
}  // namespace penstock
