#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "codec/codec.h"
#include "codec/formats.h"
#include "codec/image_properties_for_tests.h"
#include "codec/images_for_tests.h"

namespace penstock {
namespace {

using made::PngOptions;
using made::Values;
using testing::HasSubstr;

std::vector<PngOptions> every_kind() {
  std::vector<PngOptions> kinds;
  const auto add = [&](int color, std::initializer_list<int> depths) {
    for (const int bits : depths) {
      for (const bool interlaced : {false, true}) {
        for (const bool transparency : {false, true}) {
          if (transparency && (color & PNG_COLOR_MASK_ALPHA) != 0) continue;
          kinds.push_back({.bits = bits,
                           .color = color,
                           .interlaced = interlaced,
                           .transparency = transparency});
        }
      }
    }
  };
  add(PNG_COLOR_TYPE_GRAY, {1, 2, 4, 8, 16});
  add(PNG_COLOR_TYPE_PALETTE, {1, 2, 4, 8});
  add(PNG_COLOR_TYPE_RGB, {8, 16});
  add(PNG_COLOR_TYPE_GRAY_ALPHA, {8, 16});
  add(PNG_COLOR_TYPE_RGB_ALPHA, {8, 16});
  return kinds;
}

std::string text(const PngOptions& options) {
  return "color type " + std::to_string(options.color) + ", bits " + std::to_string(options.bits) +
         (options.interlaced ? ", interlaced" : "") +
         (options.transparency ? ", transparency" : "") + ", filters " +
         std::to_string(options.filters) + ", " + std::to_string(options.width) + " x " +
         std::to_string(options.height);
}

/// Corrects the CRCs of all complete chunks.
void repair_crcs(Values& file) {
  std::size_t at = 8;
  while (at + 12 <= file.size()) {
    const std::size_t length = std::size_t{file[at]} << 24U | std::size_t{file[at + 1]} << 16U |
                               std::size_t{file[at + 2]} << 8U | file[at + 3];
    if (length > file.size() - at - 12) return;
    const auto crc = crc32(0, file.data() + at + 4, static_cast<unsigned>(length + 4));
    for (unsigned i = 0; i < 4; ++i)
      file[at + 8 + length + i] = static_cast<std::uint8_t>(crc >> (24U - 8U * i));
    at += 12 + length;
  }
}

TEST(PngTest, EveryKindEqualsLibpng) {
  for (PngOptions options : every_kind()) {
    for (const unsigned width : {1U, 7U, 33U}) {
      for (const unsigned height : {1U, 19U}) {
        options.width = width;
        options.height = height;
        const Values file = made::png(options);
        for (const bool keep : {false, true}) {
          const auto decoded = made::decode(file, {.channels = 0, .keep_16_bit = keep});
          ASSERT_EQ(decoded.message, "") << text(options);
          ASSERT_EQ(decoded.info.channels, decoded.pixels.channels);
          ASSERT_EQ(decoded.values, made::png_plainly(file, keep)) << text(options);
        }
      }
    }
  }
}

TEST(PngTest, EveryFilterEqualsLibpng) {
  for (const int filters : {PNG_FILTER_NONE, PNG_FILTER_SUB, PNG_FILTER_UP, PNG_FILTER_AVG,
                            PNG_FILTER_PAETH, PNG_ALL_FILTERS}) {
    for (PngOptions options : every_kind()) {
      options.filters = filters;
      options.width = 41;
      options.chunk = 100;  // many chunks of pixel data
      const Values file = made::png(options);
      ASSERT_EQ(made::decode(file, {.channels = 0}).values, made::png_plainly(file, false))
          << text(options);
    }
  }
}

TEST(PngTest, ARegionIsThatPartOfTheImage) {
  for (PngOptions options : every_kind()) {
    options.width = 23;
    options.height = 21;
    SCOPED_TRACE(text(options));
    made::expect_regions_equal_crops(made::png(options), {.channels = 0}, 5);
  }
  made::expect_regions_equal_crops(made::png({.width = 31, .height = 29}));
}

/// The position of the last four bytes of the pixel data: its checksum, possibly split over two
/// chunks.
std::vector<std::size_t> places_of_sum(const Values& file) {
  std::vector<std::size_t> places;
  const auto bytes = made::bytes_of(file);
  for (std::size_t at = 8; at + 12 <= file.size();) {
    const std::size_t length = big32(bytes, at);
    if (has_text(bytes, at + 4, "IDAT"))
      for (std::size_t i = 0; i < length; ++i) places.push_back(at + 8 + i);
    at += 12 + length;
  }
  return {places.end() - 4, places.end()};
}

TEST(PngTest, RowsThatDoNotMatchTheirChecksumAreRejected) {
  for (PngOptions options : every_kind()) {
    options.height = 9;
    for (const std::size_t chunk : {6U, 7U, 11U, 13U, 64U, 8192U}) {
      options.chunk = chunk;
      const Values file = made::png(options);
      for (const std::size_t place : places_of_sum(file)) {
        Values damaged = file;
        damaged[place] ^= 0x40;
        repair_crcs(damaged);
        ASSERT_NE(made::decode(damaged, {.channels = 0}).message, "")
            << text(options) << ", chunks of " << chunk;
      }
    }
  }
}

TEST(PngTest, WithoutAlphaAKeyedColorIsUnchanged) {
  for (PngOptions options : every_kind()) {
    if (!options.transparency) continue;
    const Values file = made::png(options);
    const auto opaque = made::decode(file, {.channels = 3});
    const auto all = made::decode(file, {.channels = 4});
    ASSERT_EQ(opaque.values.size() / 3, all.values.size() / 4);
    for (std::size_t i = 0; i < opaque.values.size(); ++i)
      ASSERT_EQ(opaque.values[i], all.values[i / 3 * 4 + i % 3]) << text(options);
  }
}

TEST(PngTest, NumbersBeyondThePaletteAreBlackAsWithLibpng) {
  Values file = made::png({.color = PNG_COLOR_TYPE_PALETTE, .palette = 64});
  // The palette shrinks to 32 entries: a chunk of 96 bytes in place of 192.
  const auto found =
      std::search(file.begin(), file.end(), std::begin("PLTE"), std::end("PLTE") - 1);
  const auto at = found - file.begin();
  file[static_cast<std::size_t>(at) - 1] = 96;
  file.erase(found + 4 + 96, found + 4 + 192);
  repair_crcs(file);
  const auto decoded = made::decode(file);
  EXPECT_EQ(decoded.message, "");
  EXPECT_EQ(decoded.values, made::png_plainly(file, false));
}

TEST(PngTest, NoTruncationPasses) {
  for (PngOptions options : every_kind()) {
    options.width = options.height = 5;
    options.chunk = 40;
    made::expect_truncations_fail(made::png(options));
  }
}

TEST(PngTest, ATruncatedFileReportsWhereItEnds) {
  const Values file = made::png({.width = 64, .height = 64});
  const Values cut(file.begin(), file.begin() + 812);
  const auto decoded = made::decode(cut);
  EXPECT_EQ(decoded.message, "the PNG ends after 812 bytes, in the middle of its pixel data");
  EXPECT_THAT(decoded.remedy, HasSubstr("fetch the file again"));
}

TEST(PngTest, ADamagedByteOfPixelDataIsDetected) {
  const Values file = made::png({});
  for (std::size_t at = 41; at + 12 < file.size(); ++at) {
    Values damaged = file;
    damaged[at] ^= 1U;
    ASSERT_NE(made::decode(damaged).message, "") << at;
  }
}

TEST(PngTest, FlippedBytesDoNoHarm) {
  for (PngOptions options : every_kind()) {
    made::expect_flips_do_no_harm(made::png(options), 40);
    made::expect_flips_do_no_harm(made::png(options), 200, repair_crcs);
  }
}

TEST(PngTest, FilesWithFlippedBytesThatDecodeEqualLibpng) {
  std::mt19937 random(3);
  int passed = 0;
  for (const PngOptions& options : every_kind()) {
    const Values file = made::png(options);
    for (int round = 0; round < 100; ++round) {
      Values damaged = file;
      damaged[16 + random() % (damaged.size() - 16)] = static_cast<std::uint8_t>(random());
      repair_crcs(damaged);
      const auto decoded =
          made::decode(damaged, {.channels = 0, .limits = {.pixels_max = 1U << 20U}});
      const Values expected = made::png_plainly(damaged, false);
      if (!decoded.message.empty() || expected.empty()) continue;
      ++passed;
      ASSERT_EQ(decoded.values, expected) << text(options) << ", round " << round;
    }
  }
  EXPECT_GT(passed, 100);
}

TEST(PngTest, AHugeClaimIsRejectedBeforeMemoryIsAllocated) {
  Values file = made::png({});
  for (const unsigned offset : {16U, 20U}) {  // 60,000 = 0xea60
    file[offset + 2] = 0xea;
    file[offset + 3] = 0x60;
  }
  repair_crcs(file);
  file.resize(1024);
  EXPECT_THAT(made::decode(file).message,
              HasSubstr("claims 60000 x 60000 pixels, more than the limit"));
  // With a limit that allows it: the data itself cannot hold that many.
  Values whole = made::png({});
  for (const unsigned offset : {16U, 20U}) {
    whole[offset + 2] = 0xea;
    whole[offset + 3] = 0x60;
  }
  repair_crcs(whole);
  EXPECT_THAT(made::decode(whole, {.limits = made::kNoLimits}).message,
              HasSubstr("bytes of pixel data cannot hold them"));
}

TEST(PngTest, TimeIsBounded) {
  const Values file = made::png({.interlaced = true});
  EXPECT_THAT(made::decode(file, {.limits = {.time_max = std::chrono::milliseconds(0)}}).message,
              HasSubstr("longer than the limit"));
}

TEST(PngTest, OrientationIsReadAndApplied) {
  const Values file = made::png({.width = 5, .height = 3, .orientation = 6});
  const auto decoded = made::decode(file);
  EXPECT_EQ(decoded.info.orientation, 6);
  EXPECT_EQ(decoded.info.width, 3);
  EXPECT_EQ(decoded.pixels.width, 3);
  EXPECT_EQ(decoded.pixels.height, 5);
}

}  // namespace
}  // namespace penstock
