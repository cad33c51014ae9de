#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "codec/codec.h"
#include "codec/image_properties_for_tests.h"
#include "codec/images_for_tests.h"
#include "codec/webp_for_tests.h"

namespace penstock {
namespace {

using made::Values;
using testing::HasSubstr;

#ifdef PENSTOCK_WEBP

using made::AnimationOptions;
using made::webp;
using made::webp_plainly;
using made::WebpOptions;

std::vector<WebpOptions> every_kind() {
  return {{.alpha = false, .lossless = false},
          {.alpha = true, .lossless = false},
          {.alpha = false, .lossless = true},
          {.alpha = true, .lossless = true}};
}

TEST(WebpTest, AFullDecodeEqualsLibwebp) {
  for (const WebpOptions& options : every_kind()) {
    const Values file = webp(options);
    const auto decoded = made::decode(file);
    EXPECT_EQ(decoded.message, "");
    EXPECT_EQ(decoded.values, webp_plainly(file, 3));
    EXPECT_EQ(decoded.info.channels, options.alpha ? 4 : 3);
    EXPECT_EQ(made::decode(file, {.channels = 4}).values, webp_plainly(file, 4));
  }
}

TEST(WebpTest, ARegionIsThatPartOfTheImage) {
  for (WebpOptions options : every_kind()) {
    options.width = 45;
    options.height = 38;
    made::expect_regions_equal_crops(webp(options), {.channels = 0}, 3);
  }
}

TEST(WebpTest, LargeFilesDecodedInPiecesHaveTheSamePixels) {
  for (const WebpOptions& options : {WebpOptions{.width = 900, .height = 700, .lossless = true},
                                     WebpOptions{.width = 1500, .height = 1400, .alpha = true}}) {
    const Values file = webp(options);
    ASSERT_GT(file.size(), std::size_t{1} << 20);
    const auto decoded = made::decode(file);
    EXPECT_EQ(decoded.message, "");
    EXPECT_TRUE(decoded.values == webp_plainly(file, 3));
    const Region part{.x = 301, .y = 77, .width = 200, .height = 333};
    const auto cut = made::decode(file, {.region = part});
    EXPECT_EQ(cut.message, "");
    EXPECT_TRUE(cut.values == made::crop(decoded, part));
    Values damaged = file;
    damaged.resize(file.size() / 2);
    const auto size = static_cast<std::uint32_t>(damaged.size() - 8);
    for (unsigned i = 0; i < 4; ++i) damaged[4 + i] = static_cast<std::uint8_t>(size >> (8 * i));
    EXPECT_NE(made::decode(damaged).message, "");
  }
}

TEST(WebpTest, TimeIsLimited) {
  EXPECT_THAT(
      made::decode(webp({}), {.limits = {.time_max = std::chrono::milliseconds(0)}}).message,
      HasSubstr("longer than the limit"));
}

TEST(WebpTest, NoTruncationPasses) {
  for (WebpOptions options : every_kind()) {
    options.width = options.height = 6;
    made::expect_truncations_fail(webp(options));
  }
  const Values file = webp({});
  const Values cut(file.begin(), file.begin() + 50);
  EXPECT_THAT(made::decode(cut).message, HasSubstr("the WebP ends after 50 bytes"));
}

TEST(WebpTest, FlippedBytesDoNoHarm) {
  for (const WebpOptions& options : every_kind()) made::expect_flips_do_no_harm(webp(options), 500);
}

TEST(WebpTest, OrientationIsReadAfterThePixels) {
  const auto decoded = made::decode(webp({.width = 12, .height = 8, .orientation = 6}));
  EXPECT_EQ(decoded.message, "");
  EXPECT_EQ(decoded.info.orientation, 6);
  EXPECT_EQ(decoded.pixels.width, 8);
  EXPECT_EQ(decoded.pixels.height, 12);
}

TEST(WebpTest, ARegionOfFilteredAlphaIsThatPartOfTheImage) {
  for (const int filter : {1, 2, 3}) {
    const Values file = webp({.width = 40, .height = 37, .alpha = true, .alpha_filter = filter});
    ASSERT_EQ(made::webp_alpha_filter(file), filter);
    EXPECT_EQ(made::decode(file, {.channels = 4}).values, webp_plainly(file, 4));
    made::expect_regions_equal_crops(file, {.channels = 4}, 3);
    made::expect_regions_equal_crops(file, {.channels = 3}, 7);
  }
}

TEST(WebpTest, WithoutAlphaInTheFileEveryPixelIsOpaque) {
  // For a damaged palette libwebp returns transparent pixels, although the file has no alpha.
  const Values file = webp({.width = 12, .height = 10, .lossless = true, .colors = 3});
  int transparent = 0;
  for (std::size_t place = 25; place < file.size(); ++place) {
    for (const unsigned flip : {1U, 2U, 4U, 64U}) {
      Values damaged = file;
      damaged[place] = static_cast<std::uint8_t>(damaged[place] ^ flip);
      const auto decoded = made::decode(damaged, {.channels = 4});
      if (!decoded.message.empty() || decoded.info.channels == 4) continue;
      const Values plain = webp_plainly(damaged, 4);
      for (std::size_t i = 3; i < decoded.values.size(); i += 4) {
        ASSERT_EQ(decoded.values[i], 255) << "byte " << place << ", " << flip;
        transparent += plain[i] != 255 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(transparent, 0);  // otherwise nothing was tested
}

TEST(WebpTest, TheFirstFrameOfAnAnimationIsRead) {
  const WebpOptions frame{.width = 40, .height = 30, .alpha = true};
  const Values still = webp(frame);
  const auto decoded = made::decode(made::webp_animation(still, frame, {}), {.channels = 0});
  EXPECT_EQ(decoded.message, "");
  EXPECT_EQ(decoded.info.channels, 4);
  EXPECT_EQ(decoded.values, webp_plainly(still, 4));
  for (const bool lossless : {false, true}) {
    const WebpOptions opaque{.width = 40, .height = 30, .lossless = lossless};
    const Values picture = webp(opaque);
    const Values file = made::webp_animation(picture, opaque, {.alpha_flag = false});
    EXPECT_EQ(made::decode(file, {.channels = 0}).values, webp_plainly(picture, 3));
    EXPECT_EQ(made::decode(file, {.channels = 4}).values, webp_plainly(picture, 4));
  }
}

TEST(WebpTest, TheCanvasOutsideTheFirstFrameIsTransparent) {
  for (const int filter : {0, 1}) {
    const WebpOptions frame{.width = 20, .height = 14, .alpha = true, .alpha_filter = filter};
    const Values still = webp(frame);
    const Values inside = webp_plainly(still, 4);
    const Values file = made::webp_animation(still, frame, {.x = 6, .y = 10});
    const auto decoded = made::decode(file, {.channels = 4});
    ASSERT_EQ(decoded.message, "");
    Values expected(std::size_t{40} * 30 * 4);
    for (std::size_t y = 0; y < 14; ++y)
      for (std::size_t i = 0; i < 20 * 4; ++i)
        expected[((y + 10) * 40 + 6) * 4 + i] = inside[y * 20 * 4 + i];
    EXPECT_EQ(decoded.values, expected);
    made::expect_regions_equal_crops(file, {.channels = 4}, 5);
    made::expect_regions_equal_crops(file, {.channels = 3}, 5);
  }
}

TEST(WebpTest, AnAnimationWithoutAFrameOrWithOneThatDoesNotFitIsDamaged) {
  Values empty = made::with_exif(webp({}), {.orientation = 1});
  empty[20] = 0x02;  // the flag of an animation
  EXPECT_THAT(made::decode(empty).message, HasSubstr("an animation without a frame"));
  const WebpOptions frame{.width = 20, .height = 14};
  const Values outside = made::webp_animation(webp(frame), frame, {.x = 22});
  EXPECT_THAT(made::decode(outside).message, HasSubstr("does not fit into it"));
  const Values other = made::webp_animation(webp(frame), {.width = 19, .height = 14}, {});
  EXPECT_THAT(made::decode(other).message, HasSubstr("does not fit into it"));
}

TEST(WebpTest, DamagedAnimationsDoNoHarm) {
  const WebpOptions frame{.width = 6, .height = 5, .alpha = true};
  const Values file = made::webp_animation(webp(frame), frame, {.width = 8, .height = 7});
  made::expect_flips_do_no_harm(file, 1000);
  made::expect_truncations_fail(file);
}

#else

TEST(WebpTest, WithoutLibwebpFilesFailWithARemedy) {
  const Values file = {'R', 'I', 'F', 'F', 4, 0, 0, 0, 'W', 'E', 'B', 'P'};
  const auto decoded = made::decode(file);
  EXPECT_THAT(decoded.message, HasSubstr("built without WebP"));
  EXPECT_THAT(decoded.remedy, HasSubstr("libwebp"));
}

#endif

}  // namespace
}  // namespace penstock
