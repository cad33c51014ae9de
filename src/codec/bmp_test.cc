#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "codec/bmp_for_tests.h"
#include "codec/codec.h"
#include "codec/image_properties_for_tests.h"

namespace penstock {
namespace {

using made::bmp;
using made::BmpOptions;
using made::every_bmp;
using made::Values;
using made::with_bmp_offset;
using testing::HasSubstr;

TEST(BmpTest, EveryKindDecodesToItsColors) {
  for (const BmpOptions& options : every_bmp()) {
    const auto decoded = made::decode(bmp(options), {.channels = 0});
    ASSERT_EQ(decoded.message, "") << options.bits << " bits, packing " << options.packing;
    const bool alpha = options.masks.size() == 4;
    ASSERT_EQ(decoded.pixels.channels, alpha ? 4 : 3);
    ASSERT_EQ(decoded.pixels.width, 5);
    ASSERT_EQ(decoded.pixels.height, 3);
    const auto channels = static_cast<std::size_t>(decoded.pixels.channels);
    for (std::size_t i = 0; i < decoded.values.size(); ++i) {
      const auto pixel = static_cast<int>(i / channels);
      ASSERT_EQ(decoded.values[i], made::bmp_pixel(options, pixel % 5, pixel / 5).at(i % channels))
          << options.bits << " bits, packing " << options.packing << ", header " << options.header
          << ", value " << i;
    }
  }
}

TEST(BmpTest, ARegionIsThatPartOfTheImage) {
  for (BmpOptions options : every_bmp()) {
    made::expect_regions_equal_crops(bmp(options), {.channels = 0});
    options.width = 19;
    options.height *= 3;
    made::expect_regions_equal_crops(bmp(options), {.channels = 0}, 4);
  }
}

TEST(BmpTest, NumbersBeyondThePaletteAreBlack) {
  const auto decoded = made::decode(bmp({.bits = 8, .colors = 7}));
  ASSERT_EQ(decoded.message, "");
  EXPECT_EQ(Values(decoded.values.end() - 3, decoded.values.end()), (Values{0, 0, 0}));
}

/// 4 x 3 pixels, whose colors are their numbers times 16.
Values run_lengths(unsigned packing, const Values& codes) {
  Values file = bmp(
      {.width = 4, .height = 3, .bits = packing == 1 ? 8U : 4U, .packing = packing, .colors = 16});
  const std::size_t start = 54 + std::size_t{16} * 4;
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t channel = 0; channel < 3; ++channel)
      file[54 + i * 4 + channel] = static_cast<std::uint8_t>(i * 16);
  file.resize(start);
  file.insert(file.end(), codes.begin(), codes.end());
  return file;
}

Values numbers_of(unsigned packing, const Values& codes) {
  const auto decoded = made::decode(run_lengths(packing, codes), {.channels = 1});
  EXPECT_EQ(decoded.message, "");
  Values numbers;
  for (const std::uint8_t each : decoded.values)
    numbers.push_back(static_cast<std::uint8_t>(each / 16));
  return numbers;
}

TEST(BmpTest, RunsMovesAndEndsFollowTheFormat) {
  // From the bottom: a run; the next row; a move of one pixel and one row; a run; the end.
  EXPECT_EQ(numbers_of(1, {2, 5, 0, 0, 0, 2, 1, 1, 3, 7, 0, 1}),
            (Values{0, 7, 7, 7, 0, 0, 0, 0, 5, 5, 0, 0}));
  EXPECT_EQ(numbers_of(1, {0, 3, 1, 2, 3, 0, 1, 4, 0, 0, 4, 9, 0, 0, 4, 8}),
            (Values{8, 8, 8, 8, 9, 9, 9, 9, 1, 2, 3, 4}));
  // Two colors of a nibble each take turns.
  EXPECT_EQ(numbers_of(2, {3, 0x5a, 0, 0, 0, 3, 0x12, 0x30, 1, 0x40, 0, 1}),
            (Values{0, 0, 0, 0, 1, 2, 3, 4, 5, 10, 5, 0}));
  // A run that is too long stays in its row.
  EXPECT_EQ(numbers_of(1, {9, 5, 0, 0, 1, 6, 0, 1}), (Values{0, 0, 0, 0, 6, 0, 0, 0, 5, 5, 5, 5}));
  EXPECT_EQ(numbers_of(1, {0, 1}), Values(12));
}

TEST(BmpTest, RunLengthCodesThatEndEarlyAreTruncated) {
  for (const Values& codes : {Values{}, Values{4, 1}, Values{4, 1, 0, 0, 4, 1, 0, 0, 3, 1},
                              Values{0, 9, 1, 2}, Values{0, 2, 1}})
    EXPECT_THAT(made::decode(run_lengths(1, codes)).message, HasSubstr("in the middle"));
}

TEST(BmpTest, TimeOfRunLengthsIsBounded) {
  EXPECT_THAT(made::decode(bmp({.bits = 8, .packing = 1}),
                           {.limits = {.time_max = std::chrono::milliseconds(0)}})
                  .message,
              HasSubstr("longer than the limit"));
}

TEST(BmpTest, AnOffsetOfThePaletteOrZeroMeansTheEndOfTheHeader) {
  for (const BmpOptions& options : {BmpOptions{.bits = 8, .colors = 252}, BmpOptions{.bits = 4},
                                    BmpOptions{.bits = 1}, BmpOptions{.bits = 24}}) {
    const Values file = bmp(options);
    const Values right = made::decode(file).values;
    for (const std::uint32_t offset : {0U, 54U})
      EXPECT_EQ(made::decode(with_bmp_offset(file, offset)).values, right) << offset;
  }
}

TEST(BmpTest, AnOffsetInsideTheHeaderOrThePaletteIsDamage) {
  const Values file = bmp({.bits = 8, .colors = 252});
  for (const std::uint32_t offset : {1U, 53U, 55U, 100U, 54U + 251 * 4})
    EXPECT_THAT(made::decode(with_bmp_offset(file, offset)).message,
                HasSubstr("header and palette end at 1062"))
        << offset;
  const Values masked = bmp({.bits = 32, .packing = 3, .masks = {0xff0000, 0xff00, 0xff}});
  EXPECT_THAT(made::decode(with_bmp_offset(masked, 58)).message, HasSubstr("end at 66"));
}

TEST(BmpTest, APaletteOfUnknownLengthEndsWherePixelsBegin) {
  Values file = bmp({.bits = 8, .colors = 15});
  const Values right = made::decode(file).values;
  file[46] = 0;  // the number of colors
  EXPECT_EQ(made::decode(file).values, right);
}

TEST(BmpTest, NoTruncationPasses) {
  for (const BmpOptions& options : every_bmp()) {
    const Values file = bmp(options);
    made::expect_truncations_fail(file, options.rle() ? file.size() - 2 : 0);
  }
}

TEST(BmpTest, FlippedBytesDoNoHarm) {
  for (const BmpOptions& options : every_bmp()) made::expect_flips_do_no_harm(bmp(options), 300);
}

TEST(BmpTest, UnsupportedFilesFailWithARemedy) {
  const auto message = [](const BmpOptions& options) {
    const auto decoded = made::decode(bmp(options));
    EXPECT_THAT(decoded.remedy, HasSubstr("convert it"));
    return decoded.message;
  };
  EXPECT_THAT(message({.bits = 24, .packing = 1}),
              HasSubstr("24 bits per pixel and compression 1"));
  EXPECT_THAT(message({.bits = 24, .packing = 4}), HasSubstr("compression 4"));
  EXPECT_THAT(message({.bits = 2}), HasSubstr("2 bits per pixel"));
  EXPECT_THAT(message({.bits = 32, .packing = 3, .masks = {0xf0f, 0xf0, 0xf000}}),
              HasSubstr("color mask of 0x00000f0f"));
  EXPECT_THAT(message({.bits = 32, .packing = 3, .masks = {0xff, 0xff, 0xff}}),
              HasSubstr("color mask"));
  EXPECT_THAT(message({.bits = 32, .packing = 3, .masks = {0xff00, 0, 0xff}}),
              HasSubstr("color mask of 0x00000000"));
  EXPECT_THAT(message({.bits = 16, .packing = 3, .masks = {0x1f0000, 0xf0, 0xf}}),
              HasSubstr("color mask"));
}

TEST(BmpTest, HugeClaimsAreRejectedBeforeMemoryIsAllocated) {
  Values file = bmp({});
  for (const std::size_t at : {18U, 22U}) file[at + 3] = 0x7f;
  EXPECT_THAT(made::decode(file).message, HasSubstr("more than the limit"));
  EXPECT_THAT(made::decode(file, {.limits = made::kNoLimits}).message,
              HasSubstr("in the middle of its pixel data"));
}

}  // namespace
}  // namespace penstock
