#include <gmock/gmock.h>
#include <gtest/gtest.h>

#ifdef PENSTOCK_WEBP
#include <webp/decode.h>
#include <webp/encode.h>
#endif

#include <chrono>
#include <cstdint>
#include <vector>

#include "codec/codec.h"
#include "codec/image_properties.h"
#include "codec/made_images.h"

namespace penstock {
namespace {

using made::Values;
using testing::HasSubstr;

#ifdef PENSTOCK_WEBP

struct WebpOptions {
  int width = 21;
  int height = 19;
  bool alpha = false;
  bool lossless = false;
  int orientation = 0;
};

void append_chunk(Values& file, std::string_view name, const Values& data) {
  file.insert(file.end(), name.begin(), name.end());
  for (unsigned i = 0; i < 4; ++i)
    file.push_back(static_cast<std::uint8_t>(data.size() >> (8 * i)));
  file.insert(file.end(), data.begin(), data.end());
  if (data.size() % 2 == 1) file.push_back(0);
}

/// The same picture in an extended file with EXIF behind it.
Values with_exif(const Values& simple, const WebpOptions& options) {
  Values file(simple.begin(), simple.begin() + 12);
  const auto width = static_cast<unsigned>(options.width - 1);
  const auto height = static_cast<unsigned>(options.height - 1);
  append_chunk(file, "VP8X",
               {0x08, 0, 0, 0, static_cast<std::uint8_t>(width), 0, 0,
                static_cast<std::uint8_t>(height), 0, 0});
  file.insert(file.end(), simple.begin() + 12, simple.end());
  append_chunk(file, "EXIF", made::exif_block(options.orientation));
  for (unsigned i = 0; i < 4; ++i)
    file[4 + i] = static_cast<std::uint8_t>((file.size() - 8) >> (8 * i));
  return file;
}

Values webp(const WebpOptions& options) {
  const int channels = options.alpha ? 4 : 3;
  const Values pixels = made::noise(static_cast<std::size_t>(options.width * options.height) *
                                    static_cast<std::size_t>(channels));
  const int stride = options.width * channels;
  std::uint8_t* out = nullptr;
  std::size_t size = 0;
  const int width = options.width;
  const int height = options.height;
  if (options.alpha && options.lossless)
    size = WebPEncodeLosslessRGBA(pixels.data(), width, height, stride, &out);
  if (options.alpha && !options.lossless)
    size = WebPEncodeRGBA(pixels.data(), width, height, stride, 80, &out);
  if (!options.alpha && options.lossless)
    size = WebPEncodeLosslessRGB(pixels.data(), width, height, stride, &out);
  if (!options.alpha && !options.lossless)
    size = WebPEncodeRGB(pixels.data(), width, height, stride, 80, &out);
  Values file(out, out + size);
  WebPFree(out);
  return options.orientation == 0 ? file : with_exif(file, options);
}

std::vector<WebpOptions> every_kind() {
  return {{.alpha = false, .lossless = false},
          {.alpha = true, .lossless = false},
          {.alpha = false, .lossless = true},
          {.alpha = true, .lossless = true}};
}

/// What libwebp makes of it by itself.
Values plainly(const Values& file, std::size_t channels) {
  int width = 0;
  int height = 0;
  auto* const decode = channels == 4 ? WebPDecodeRGBA : WebPDecodeRGB;
  std::uint8_t* const pixels = decode(file.data(), file.size(), &width, &height);
  const std::size_t size =
      static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * channels;
  Values values(pixels, pixels + size);
  WebPFree(pixels);
  return values;
}

TEST(WebpTest, AFullDecodeIsWhatLibwebpGives) {
  for (const WebpOptions& options : every_kind()) {
    const Values file = webp(options);
    const auto decoded = made::decode(file);
    EXPECT_EQ(decoded.message, "");
    EXPECT_EQ(decoded.values, plainly(file, 3));
    EXPECT_EQ(decoded.info.channels, options.alpha ? 4 : 3);
    EXPECT_EQ(made::decode(file, {.channels = 4}).values, plainly(file, 4));
  }
}

TEST(WebpTest, ARegionIsThatPartOfTheImage) {
  for (WebpOptions options : every_kind()) {
    options.width = 45;
    options.height = 38;
    made::expect_regions_equal_crops(webp(options), {.channels = 0}, 3);
  }
}

TEST(WebpTest, LargeFilesThatComeInPiecesHaveTheSamePixels) {
  for (const WebpOptions& options : {WebpOptions{.width = 900, .height = 700, .lossless = true},
                                     WebpOptions{.width = 1500, .height = 1400, .alpha = true}}) {
    const Values file = webp(options);
    ASSERT_GT(file.size(), std::size_t{1} << 20);
    const auto decoded = made::decode(file);
    EXPECT_EQ(decoded.message, "");
    EXPECT_TRUE(decoded.values == plainly(file, 3));
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

TEST(WebpTest, OrientationIsReadFromBehindThePixels) {
  const auto decoded = made::decode(webp({.width = 12, .height = 8, .orientation = 6}));
  EXPECT_EQ(decoded.message, "");
  EXPECT_EQ(decoded.info.orientation, 6);
  EXPECT_EQ(decoded.pixels.width, 8);
  EXPECT_EQ(decoded.pixels.height, 12);
}

TEST(WebpTest, AnAnimationIsRefusedWithARemedy) {
  Values file = with_exif(webp({}), {.orientation = 1});
  file[20] = 0x02;  // the flag of an animation
  const auto decoded = made::decode(file);
  EXPECT_THAT(decoded.message, HasSubstr("is an animation"));
  EXPECT_NE(decoded.remedy, "");
}

#else

TEST(WebpTest, WithoutTheLibraryFilesAreRefusedWithARemedy) {
  const Values file = {'R', 'I', 'F', 'F', 4, 0, 0, 0, 'W', 'E', 'B', 'P'};
  const auto decoded = made::decode(file);
  EXPECT_THAT(decoded.message, HasSubstr("built without WebP"));
  EXPECT_THAT(decoded.remedy, HasSubstr("libwebp"));
}

#endif

}  // namespace
}  // namespace penstock
