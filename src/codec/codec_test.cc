#include "codec/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string_view>

#include "codec/formats.h"
#include "codec/image_properties_for_tests.h"
#include "codec/images_for_tests.h"

namespace penstock {
namespace {

using made::Values;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

Values file_of(std::string_view text) {
  return {text.begin(), text.end()};
}

TEST(CodecTest, AFormatIsDetectedByItsFirstBytes) {
  const auto format = [](std::string_view text) {
    return image_format_of(made::bytes_of(file_of(text)));
  };
  EXPECT_EQ(format("\xff\xd8\xff\xe0"), ImageFormat::jpeg);
  EXPECT_EQ(format("\x89PNG\r\n\x1a\n"), ImageFormat::png);
  EXPECT_EQ(format("RIFFxxxxWEBPVP8 "), ImageFormat::webp);
  EXPECT_EQ(format("BM"), ImageFormat::bmp);
  EXPECT_EQ(format("P6\n"), ImageFormat::pnm);
  EXPECT_EQ(format("P2#"), ImageFormat::pnm);
  EXPECT_EQ(format("\x93NUMPY"), ImageFormat::npy);
  EXPECT_EQ(format("RIFFxxxxWAVE"), std::nullopt);
  EXPECT_EQ(format("P1 "), ImageFormat::pnm);
  EXPECT_EQ(format("P4\n"), ImageFormat::pnm);
  EXPECT_EQ(format("P7 "), std::nullopt);
  EXPECT_EQ(format("P66"), std::nullopt);
  EXPECT_EQ(format("\xff\xd8"), std::nullopt);
  EXPECT_EQ(format(""), std::nullopt);
}

TEST(CodecTest, EveryFormatHasAUniqueNameAndExtensions) {
  EXPECT_THAT(image_extensions(), UnorderedElementsAre("jpg", "jpeg", "png", "webp", "bmp", "ppm",
                                                       "pgm", "pbm", "npy"));
  EXPECT_THAT(image_extensions(ImageFormat::jpeg), ElementsAre("jpg", "jpeg"));
  EXPECT_EQ(image_format_name(ImageFormat::jpeg), "JPEG");
  std::set<std::string_view> names;
  for (const FormatEntry& entry : image_formats()) {
    EXPECT_EQ(&format_entry(entry.format), &entry);
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.extensions.empty()) << entry.name;
  }
}

TEST(CodecTest, AFileThatIsNotAnImageFailsWithAMessage) {
  EXPECT_EQ(made::decode(file_of("")).message, "the file is empty");
  const auto decoded = made::decode(file_of("GIF89a and more"));
  EXPECT_EQ(decoded.message, "no supported image format begins with 47 49 46 38 39 61 20 61");
  EXPECT_EQ(decoded.remedy, "convert it to one of JPEG, PNG, WebP, BMP, PPM/PGM, npy");
  EXPECT_NE(made::decode(file_of("hello")).message, "");
}

TEST(CodecTest, LimitsHoldForBytesAndPixels) {
  const Values file = made::png({.width = 30, .height = 20});
  EXPECT_THAT(made::decode(file, {.limits = {.bytes_max = 10}}).message,
              HasSubstr("more than the limit of 10"));
  EXPECT_THAT(made::decode(file, {.limits = {.pixels_max = 599}}).message,
              HasSubstr("claims 30 x 20 pixels, more than the limit of 599"));
  EXPECT_EQ(made::decode(file, {.limits = {.pixels_max = 600}}).message, "");
  EXPECT_THAT(made::decode(file, {.limits = {.side_max = 29}}).message,
              HasSubstr("claims 30 x 20 pixels, more than the limit of 29 for one side"));
  EXPECT_EQ(made::decode(file, {.limits = {.side_max = 30}}).message, "");
  const Values bomb = made::png({.width = 1 << 17, .height = 1, .bits = 1, .color = 0});
  EXPECT_THAT(made::decode(bomb).message, HasSubstr("for one side"));
  // Decoding checks, too: the probe may have had other limits.
  const auto bytes = made::bytes_of(file);
  const auto info = probe_image(bytes);
  ASSERT_TRUE(info.ok());
  Scratch scratch;
  EXPECT_FALSE(decode_image(bytes, *info, {.limits = {.pixels_max = 599}}, scratch).ok());
  EXPECT_FALSE(decode_image(bytes, *info, {.limits = {.bytes_max = 10}}, scratch).ok());
}

TEST(CodecTest, ARegionMustBeInsideTheImage) {
  const Values file = made::png({.width = 30, .height = 20});
  for (const Region part : {Region{0, 0, 31, 1}, Region{30, 0, 1, 1}, Region{0, 20, 1, 1},
                            Region{-1, 0, 2, 2}, Region{0, 0, 0, 1}, Region{0, 0, 1, -1},
                            Region{INT64_MAX, 0, 1, 1}, Region{1, 1, INT64_MAX, 1}}) {
    EXPECT_THAT(made::decode(file, {.region = part}).message, HasSubstr("is not inside"));
  }
  EXPECT_EQ(made::decode(file, {.region = Region{29, 19, 1, 1}}).message, "");
}

TEST(CodecTest, ChannelsAreTheRequestedOnes) {
  const Values file = made::png({});
  for (const int channels : {1, 3, 4}) {
    EXPECT_EQ(made::decode(file, {.channels = channels}).pixels.channels, channels);
  }
  EXPECT_EQ(made::decode(file, {.channels = 0}).pixels.channels, 3);
  EXPECT_THAT(made::decode(file, {.channels = 5}).message, HasSubstr("5 channels"));
  EXPECT_THAT(made::decode(file, {.channels = -1}).message, HasSubstr("-1 channels"));
}

TEST(CodecTest, AnInfoOfAnotherFileIsDetected) {
  const Values file = made::png({.width = 30, .height = 20});
  const Values other = made::png({.width = 20, .height = 30});
  const auto info = probe_image(made::bytes_of(other));
  ASSERT_TRUE(info.ok());
  Scratch scratch;
  EXPECT_FALSE(decode_image(made::bytes_of(file), *info, {}, scratch).ok());
}

TEST(CodecTest, AllEightOrientationsShowTheSameImageInEveryRegion) {
  constexpr int kWidth = 22;
  constexpr int kHeight = 13;
  const Values pixels = made::noise(std::size_t{kWidth} * kHeight * 3);
  const auto upright = made::decode(made::jpeg({.width = kWidth, .height = kHeight}, pixels));
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Values file =
        made::jpeg({.width = kWidth, .height = kHeight, .orientation = orientation}, pixels);
    const auto seen = made::decode(file);
    ASSERT_EQ(seen.message, "");
    ASSERT_EQ(seen.info.orientation, orientation);
    ASSERT_EQ(seen.info.width, orientation >= 5 ? kHeight : kWidth);
    ASSERT_EQ(seen.pixels.width, seen.info.width);
    ASSERT_EQ(seen.pixels.height, seen.info.height);
    const auto at = [](const made::Decoded& image, std::int64_t x, std::int64_t y) {
      return made::crop(image, {x, y, 1, 1});
    };
    for (std::int64_t y = 0; y < kHeight; ++y) {
      for (std::int64_t x = 0; x < kWidth; ++x) {
        const std::int64_t right = kWidth - 1 - x;
        const std::int64_t below = kHeight - 1 - y;
        // Where the stored pixel at x, y is displayed.
        const std::array<std::array<std::int64_t, 2>, 8> places = {{{x, y},
                                                                    {right, y},
                                                                    {right, below},
                                                                    {x, below},
                                                                    {y, x},
                                                                    {below, x},
                                                                    {below, right},
                                                                    {y, right}}};
        const auto place = places.at(static_cast<std::size_t>(orientation - 1));
        ASSERT_EQ(at(seen, place[0], place[1]), at(upright, x, y)) << orientation;
      }
    }
    made::expect_regions_equal_crops(file);
  }
}

TEST(CodecTest, SlackAfterTheLastRowMayBeRead) {
  // The address sanitizer fails otherwise.
  for (const Values& file :
       {made::png({}), made::jpeg({}), made::png({.color = PNG_COLOR_TYPE_PALETTE}),
        made::png({.bits = 16}), made::png({.orientation = 6})}) {
    Scratch scratch;
    const auto info = probe_image(made::bytes_of(file));
    ASSERT_TRUE(info.ok());
    const auto decoded = decode_image(made::bytes_of(file), *info, {}, scratch);
    ASSERT_TRUE(decoded.ok());
    const std::byte* const end =
        (*decoded).data + static_cast<std::size_t>((*decoded).height - 1) * (*decoded).stride +
        static_cast<std::size_t>((*decoded).width * (*decoded).channels);
    unsigned sum = 0;
    for (std::size_t i = 0; i < Pixels::kSlack; ++i)
      sum +=
          static_cast<volatile const std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(end))[i];
    EXPECT_LT(sum, 255U * 65U);
  }
}

}  // namespace
}  // namespace penstock
