#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "codec/codec.h"
#include "codec/image_properties_for_tests.h"
#include "codec/images_for_tests.h"

namespace penstock {
namespace {

using made::JpegOptions;
using made::Values;
using testing::HasSubstr;

struct Sampling {
  int h;
  int v;
};
constexpr Sampling kSamplings[] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}};

std::vector<JpegOptions> every_kind() {
  std::vector<JpegOptions> kinds;
  for (const int channels : {1, 3, 4}) {
    for (const bool progressive : {false, true}) {
      for (const bool stored_rgb : {false, true}) {
        JpegOptions options{.width = 37, .height = 29, .channels = channels};
        if (stored_rgb) options.h_samples = options.v_samples = 1;
        options.progressive = progressive;
        options.stored_rgb = stored_rgb;
        kinds.push_back(options);
      }
    }
  }
  kinds.push_back({.width = 37, .height = 29, .arithmetic = true});
  kinds.push_back({.width = 37, .height = 29, .restart = 2});
  return kinds;
}

std::string text(const JpegOptions& options) {
  return std::to_string(options.width) + " x " + std::to_string(options.height) + " x " +
         std::to_string(options.channels) + ", samples " + std::to_string(options.h_samples) +
         " x " + std::to_string(options.v_samples) + (options.progressive ? ", progressive" : "") +
         (options.stored_rgb ? ", colors as they are" : "");
}

TEST(JpegTest, AFullDecodeEqualsLibjpeg) {
  for (const Sampling sampling : kSamplings) {
    for (JpegOptions options : every_kind()) {
      if (options.channels == 4) continue;
      if (!options.stored_rgb) {
        options.h_samples = sampling.h;
        options.v_samples = sampling.v;
      }
      const Values file = made::jpeg(options);
      ASSERT_EQ(made::decode(file).values, made::jpeg_plainly(file, JCS_RGB)) << text(options);
      ASSERT_EQ(made::decode(file, {.channels = 4}).values, made::jpeg_plainly(file, JCS_EXT_RGBA))
          << text(options);
      if (options.stored_rgb && options.channels == 3) continue;
      ASSERT_EQ(made::decode(file, {.channels = 1}).values, made::jpeg_plainly(file, JCS_GRAYSCALE))
          << text(options);
    }
  }
}

TEST(JpegTest, ARegionIsThatPartOfTheImageAtEveryOffset) {
  for (const Sampling sampling : kSamplings) {
    for (const bool progressive : {false, true}) {
      const JpegOptions options{.width = 37,
                                .height = 53,
                                .h_samples = sampling.h,
                                .v_samples = sampling.v,
                                .progressive = progressive};
      SCOPED_TRACE(text(options));
      made::expect_regions_equal_crops(made::jpeg(options), {}, 3);
    }
  }
  made::expect_regions_equal_crops(made::jpeg({.width = 48, .height = 32}));
}

TEST(JpegTest, ARegionOfEveryKindIsThatPartOfTheImage) {
  for (const JpegOptions& options : every_kind()) {
    SCOPED_TRACE(text(options));
    for (const int channels : {0, 1, 4})
      made::expect_regions_equal_crops(made::jpeg(options), {.channels = channels}, 11);
  }
}

TEST(JpegTest, ImagesOneRowOrColumnWideDecode) {
  for (const Sampling sampling : kSamplings) {
    for (const int length : {1, 2, 3, 9, 40}) {
      for (const bool tall : {false, true}) {
        const JpegOptions options{.width = tall ? 1 : length,
                                  .height = tall ? length : 1,
                                  .h_samples = sampling.h,
                                  .v_samples = sampling.v};
        SCOPED_TRACE(text(options));
        const Values file = made::jpeg(options);
        ASSERT_EQ(made::decode(file).values, made::jpeg_plainly(file, JCS_RGB));
        made::expect_regions_equal_crops(file);
      }
    }
  }
}

TEST(JpegTest, InvertedAndPlainCmykBecomeRgb) {
  // Ink as Adobe stores it: 255 is none. White, black, cyan.
  const Values ink = {255, 255, 255, 255, 255, 255, 255, 0, 0, 255, 255, 255};
  Values pixels;
  for (std::size_t pixel = 0; pixel < 3; ++pixel)
    for (int i = 0; i < 64 * 8; ++i)
      pixels.insert(pixels.end(), ink.begin() + static_cast<std::ptrdiff_t>(pixel * 4),
                    ink.begin() + static_cast<std::ptrdiff_t>(pixel * 4 + 4));
  Values file = made::jpeg(
      {.width = 64, .height = 24, .channels = 4, .h_samples = 1, .v_samples = 1}, pixels);
  const auto adobe = made::decode(file);
  EXPECT_TRUE(adobe.info.cmyk);
  EXPECT_EQ(adobe.info.channels, 3);
  EXPECT_EQ(adobe.pixels.channels, 3);
  const auto near = [](int value, int wanted) { return std::abs(value - wanted) < 4; };
  const std::size_t band = std::size_t{64} * 8 * 3;
  EXPECT_TRUE(near(adobe.values[0], 255)) << int{adobe.values[0]};
  EXPECT_TRUE(near(adobe.values[band], 0)) << int{adobe.values[band]};
  EXPECT_TRUE(near(adobe.values[2 * band], 0)) << int{adobe.values[2 * band]};
  EXPECT_TRUE(near(adobe.values[2 * band + 1], 255)) << int{adobe.values[2 * band + 1]};
  // The same without Adobe's mark (APP14) means the opposite.
  file = made::jpeg({.width = 64,
                     .height = 24,
                     .channels = 4,
                     .h_samples = 1,
                     .v_samples = 1,
                     .stored_rgb = true},
                    pixels);
  const auto mark =
      std::search(file.begin(), file.end(), std::begin("Adobe"), std::end("Adobe") - 1);
  ASSERT_NE(mark, file.end());
  *mark = 'B';
  const auto plain = made::decode(file);
  EXPECT_TRUE(near(plain.values[0], 0)) << int{plain.values[0]};
}

TEST(JpegTest, CmykIsTheProductOfInkAndBlack) {
  const Values file = made::jpeg({.width = 33, .height = 9, .channels = 4});
  const Values ink = made::jpeg_plainly(file, JCS_CMYK);
  const auto decoded = made::decode(file);
  ASSERT_EQ(decoded.values.size() / 3, ink.size() / 4);
  for (std::size_t i = 0; i < decoded.values.size(); ++i) {
    const int expected = (ink[i / 3 * 4 + i % 3] * ink[i / 3 * 4 + 3] * 2 + 255) / 510;
    ASSERT_EQ(decoded.values[i], expected) << i;
  }
}

TEST(JpegTest, GrayOfAFileThatStoresRgbIsComputedFromRgb) {
  const Values file = made::jpeg({.h_samples = 1, .v_samples = 1, .stored_rgb = true});
  const auto rgb = made::decode(file);
  const auto gray = made::decode(file, {.channels = 1});
  for (std::size_t i = 0; i < gray.values.size(); ++i) {
    const int sum =
        299 * rgb.values[i * 3] + 587 * rgb.values[i * 3 + 1] + 114 * rgb.values[i * 3 + 2] + 500;
    ASSERT_EQ(gray.values[i], sum / 1000);
  }
}

TEST(JpegTest, FastDecodesAreNotSmallerThanAllowed) {
  const Values file = made::jpeg({.width = 320, .height = 240});
  const auto size = [&](std::int64_t width, std::int64_t height, std::optional<Region> part = {}) {
    const auto decoded =
        made::decode(file, {.region = part, .fast_width = width, .fast_height = height});
    EXPECT_EQ(decoded.message, "");
    return std::pair(decoded.pixels.width, decoded.pixels.height);
  };
  EXPECT_EQ(size(0, 0), std::pair(320L, 240L));
  EXPECT_EQ(size(161, 1), std::pair(320L, 240L));
  EXPECT_EQ(size(160, 120), std::pair(160L, 120L));
  EXPECT_EQ(size(160, 0), std::pair(320L, 240L));
  EXPECT_EQ(size(80, 60), std::pair(80L, 60L));
  EXPECT_EQ(size(1, 1), std::pair(40L, 30L));
  EXPECT_EQ(made::decode(file, {.fast_width = 160, .fast_height = 120}).values,
            made::jpeg_plainly(file, JCS_RGB, 2));
  for (std::int64_t x = 0; x < 40; ++x) {
    const auto [width, height] = size(20, 10, Region{x, 2 * x, 45, 31});
    EXPECT_TRUE(width >= 20 && width <= 24 && height >= 10 && height <= 16);
    EXPECT_EQ(size(1, 1, Region{x + 280, 5 * x, 1, 1}), std::pair(1L, 1L));
  }
}

TEST(JpegTest, AScaledRegionIsThatPartOfTheScaledImage) {
  const Values file = made::jpeg({.width = 96, .height = 80});
  const auto full = made::decode(file, {.fast_width = 48, .fast_height = 40});
  ASSERT_EQ(full.pixels.width, 48);
  for (std::int64_t x = 0; x <= 48; x += 2) {
    const auto part = made::decode(
        file, {.region = Region{x, x / 2 * 2, 32, 24}, .fast_width = 16, .fast_height = 12});
    ASSERT_EQ(part.pixels.width, 16);
    ASSERT_EQ(part.values, made::crop(full, {x / 2, x / 2, 16, 12})) << x;
  }
}

TEST(JpegTest, NoTruncationPasses) {
  for (JpegOptions options : every_kind()) {
    options.width = 9;
    options.height = 11;
    SCOPED_TRACE(text(options));
    made::expect_truncations_fail(made::jpeg(options));
  }
}

TEST(JpegTest, ATruncatedFileReportsWhereItEnds) {
  const Values file = made::jpeg({.width = 100, .height = 100});
  const Values cut(file.begin(), file.begin() + 3000);
  EXPECT_EQ(made::decode(cut).message,
            "the JPEG ends after 3000 bytes, in the middle of its pixel data");
  const Values stub(file.begin(), file.begin() + 100);
  EXPECT_EQ(made::decode(stub).message, "the JPEG ends after 100 bytes, inside its header");
}

TEST(JpegTest, FlippedBytesDoNoHarm) {
  for (const JpegOptions& options : every_kind()) {
    SCOPED_TRACE(text(options));
    made::expect_flips_do_no_harm(made::jpeg(options), 300);
  }
}

TEST(JpegTest, AfterADamagedFileTheNextOneIsFine) {
  const Values file = made::jpeg({});
  const Values expected = made::jpeg_plainly(file, JCS_RGB);
  for (std::size_t size = 2; size < file.size(); size += 7) {
    const Values cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(made::decode(cut).message, "");
    ASSERT_EQ(made::decode(file).values, expected);
  }
}

TEST(JpegTest, ADecodeDoesNotDependOnThePreviousImage) {
  // Without its quantization tables a file is damaged, whatever was decoded before it.
  const Values file = made::jpeg({});
  Values without = file;
  const Values mark = {0xff, 0xdb};
  for (auto at = std::search(without.begin(), without.end(), mark.begin(), mark.end());
       at != without.end();
       at = std::search(without.begin(), without.end(), mark.begin(), mark.end()))
    without.erase(at, at + 2 + at[2] * 256 + at[3]);
  ASSERT_LT(without.size(), file.size());
  EXPECT_EQ(made::decode(file).message, "");
  EXPECT_THAT(made::decode(without).message, HasSubstr("Quantization table"));
}

TEST(JpegTest, BytesBetweenSegmentsAreAccepted) {
  // Many photos of a known set of cats and dogs have such bytes.
  Values file = made::jpeg({});
  file.insert(file.end() - 2, {0x12, 0x34, 0x56});
  EXPECT_EQ(made::decode(file).message, "");
}

TEST(JpegTest, AHugeClaimIsRejectedBeforeMemoryIsAllocated) {
  Values file = made::jpeg({.progressive = true});
  const auto frame =
      std::search(file.begin(), file.end(), std::begin("\xff\xc2"), std::end("\xff\xc2") - 1,
                  [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); });
  const auto at = static_cast<std::size_t>(frame - file.begin());
  for (const std::size_t offset : {5U, 7U}) {
    file[at + offset] = 0xea;
    file[at + offset + 1] = 0x60;
  }
  EXPECT_THAT(made::decode(file).message, HasSubstr("more than the limit"));
  EXPECT_THAT(made::decode(file, {.limits = made::kNoLimits}).message,
              HasSubstr("claims 60000 x 60000 pixels, but has only"));
}

TEST(JpegTest, ScansAndTimeAreBounded) {
  Values file = made::jpeg({.progressive = true});
  // The last scan, repeated many times.
  const Values mark = {0xff, 0xda};
  const auto last = std::find_end(file.begin(), file.end(), mark.begin(), mark.end());
  const Values scan(last, file.end() - 2);
  for (int i = 0; i < 600; ++i) file.insert(file.end() - 2, scan.begin(), scan.end());
  EXPECT_EQ(made::decode(file).message, "the JPEG has more than 500 scans");
  for (const bool progressive : {false, true}) {
    EXPECT_THAT(made::decode(made::jpeg({.progressive = progressive}),
                             {.limits = {.time_max = std::chrono::milliseconds(0)}})
                    .message,
                HasSubstr("took longer than the limit"));
  }
}

TEST(JpegTest, UnsupportedKindsAreNamed) {
  Values file = made::jpeg({});
  const Values mark = {0xff, 0xc0};
  const auto frame = std::search(file.begin(), file.end(), mark.begin(), mark.end());
  Values twelve = file;
  twelve[static_cast<std::size_t>(frame - file.begin()) + 4] = 12;
  EXPECT_THAT(made::decode(twelve).message, HasSubstr("12 bits per value"));
  Values lossless = file;
  lossless[static_cast<std::size_t>(frame - file.begin()) + 1] = 0xc3;
  EXPECT_THAT(made::decode(lossless).message, HasSubstr("SOF3"));
  EXPECT_NE(made::decode(lossless).remedy, "");
}

}  // namespace
}  // namespace penstock
