#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "codec/codec.h"
#include "codec/image_properties_for_tests.h"
#include "codec/images_for_tests.h"

namespace penstock {
namespace {

using made::Values;
using testing::HasSubstr;

Values file_of(std::string_view text) {
  return {text.begin(), text.end()};
}

TEST(PnmTest, TextAndBinaryFilesGiveTheSamePixels) {
  const Values expected = {0, 17, 255, 3, 4, 5};
  EXPECT_EQ(made::decode(file_of("P2 3 2 255\n0 17 255 3 4 5\n"), {.channels = 0}).values,
            expected);
  EXPECT_EQ(made::decode(file_of("P3 1 2 255\n0 17 255 3 4 5"), {.channels = 0}).values, expected);
  using std::string_view_literals::operator""sv;
  EXPECT_EQ(made::decode(file_of("P5 3 2 255\n\x00\x11\xff\x03\x04\x05"sv), {.channels = 0}).values,
            expected);
  EXPECT_EQ(made::decode(file_of("P6 1 2 255\n\x00\x11\xff\x03\x04\x05"sv), {.channels = 0}).values,
            expected);
}

TEST(PnmTest, CommentsMayStandBetweenNumbers) {
  const Values file = file_of("P2# a comment\n# another\n 2 # width\n1\n#max\r\n255\n# x 9\n7 8");
  EXPECT_EQ(made::decode(file, {.channels = 1}).values, (Values{7, 8}));
  EXPECT_EQ(made::decode(file_of("P5\n# made by hand\n2 1\n255\nab"), {.channels = 1}).values,
            (Values{'a', 'b'}));
}

TEST(PnmTest, OtherLargestValuesAreScaled) {
  EXPECT_EQ(made::decode(file_of("P2 4 1 3 0 1 2 3"), {.channels = 1}).values,
            (Values{0, 85, 170, 255}));
  const Values wide = file_of("P2 3 1 65535 0 4660 65535");
  EXPECT_EQ(made::decode(wide, {.channels = 1}).values, (Values{0, 0x12, 255}));
  const auto kept = made::decode(wide, {.channels = 1, .keep_16_bit = true});
  EXPECT_EQ(kept.pixels.dtype, Dtype::u16);
  EXPECT_EQ(kept.values, (Values{0, 0, 0x34, 0x12, 0xff, 0xff}));
  const auto bytes =
      made::decode(file_of("P5 1 1 65535 \x12\x34"), {.channels = 1, .keep_16_bit = true});
  EXPECT_EQ(bytes.values, (Values{0x34, 0x12}));
  EXPECT_EQ(made::decode(file_of("P2 1 1 1023 1023"), {.channels = 1, .keep_16_bit = true}).values,
            (Values{0xff, 0xff}));
}

Values numbers(char kind, int width, int height, int most) {
  const bool text = kind < '4';
  const bool color = kind == '3' || kind == '6';
  std::string file = fmt::format("P{} {} {} {}\n", kind, width, height, most);
  for (int i = 0; i < width * height * (color ? 3 : 1); ++i) {
    const int value = i * 37 % (most + 1);
    if (text) {
      file += fmt::format("{} ", value);
      continue;
    }
    if (most > 255) file += static_cast<char>(value >> 8);
    file += static_cast<char>(value);
  }
  if (text) file.pop_back();
  return file_of(file);
}

TEST(PnmTest, ARegionIsThatPartOfTheImage) {
  for (const char kind : {'2', '3', '5', '6'}) {
    for (const int most : {9, 255, 999}) {
      for (const bool keep : {false, true}) {
        made::expect_regions_equal_crops(numbers(kind, 9, 7, most),
                                         {.channels = 0, .keep_16_bit = keep});
      }
    }
  }
}

TEST(PnmTest, OfABitmapOneIsBlackAndZeroWhite) {
  const Values expected = {0, 255, 0, 0, 255, 255};
  EXPECT_EQ(made::decode(file_of("P1 3 2\n1 0 1\n1 0 0\n"), {.channels = 0}).values, expected);
  EXPECT_EQ(made::decode(file_of("P1 # bits\n3 2 101100"), {.channels = 0}).values, expected);
  EXPECT_EQ(made::decode(file_of("P4 3 2\n\xbf\x9f"), {.channels = 0}).values, expected);
  EXPECT_EQ(made::decode(file_of("P4 9 1\n\x55\x80"), {.channels = 0}).values,
            (Values{255, 0, 255, 0, 255, 0, 255, 0, 0}));
}

TEST(PnmTest, ARegionOfABitmapIsThatPartOfIt) {
  std::string text = "P1 19 7\n";
  std::string bits = "P4 19 7\n";
  for (int i = 0; i < 19 * 7; ++i) text += i * i % 7 < 3 ? "1" : "0 ";
  for (int i = 0; i < 3 * 7; ++i) bits += static_cast<char>(i * 41);
  for (const std::string& file : {text, bits})
    made::expect_regions_equal_crops(file_of(file), {.channels = 0});
}

TEST(PnmTest, DamagedBitmapsAreDetectedAndDoNoHarm) {
  made::expect_truncations_fail(file_of("P1 3 2 1 0 1 1 0 0"));
  made::expect_truncations_fail(file_of("P4 9 2 abcd"));
  EXPECT_THAT(made::decode(file_of("P1 2 1 1 2")).message, HasSubstr("damaged at byte 9"));
  for (const char* text : {"P1 3 2 1 0 1 1 0 0", "P4 9 2 abcd"})
    made::expect_flips_do_no_harm(file_of(text), 1000);
}

TEST(PnmTest, NoTruncationPasses) {
  // In text files the last digits may be missing without a trace.
  made::expect_truncations_fail(file_of("P2 3 2 255 0 17 255 3 4 5"));
  made::expect_truncations_fail(file_of("P3 1 2 255 0 17 255 3 4 5"));
  made::expect_truncations_fail(numbers('5', 5, 4, 255));
  made::expect_truncations_fail(numbers('6', 5, 4, 65535));
  EXPECT_THAT(made::decode(file_of("P5 100 100 255 abc")).message,
              HasSubstr("ends after 18 bytes, in the middle of its pixel data"));
}

TEST(PnmTest, FlippedBytesDoNoHarm) {
  for (const char kind : {'2', '3', '5', '6'})
    made::expect_flips_do_no_harm(numbers(kind, 5, 4, 255), 1000);
}

TEST(PnmTest, ANonNumberIsDetected) {
  EXPECT_THAT(made::decode(file_of("P2 2 1 255 1 x")).message, HasSubstr("damaged at byte 13"));
  EXPECT_THAT(made::decode(file_of("P2 2 1 255 1 256")).message, HasSubstr("a number up to 255"));
  EXPECT_THAT(made::decode(file_of("P2 2 1 65536 1 256")).message, HasSubstr("header is damaged"));
  EXPECT_THAT(made::decode(file_of("P2 0 1 255 1")).message, HasSubstr("0 x 1 pixels"));
  EXPECT_THAT(made::decode(file_of("P5 60000 60000 255 1")).message, HasSubstr("the limit"));
  EXPECT_THAT(made::decode(file_of("P6 2147483647 2147483647 65535 1"), {.limits = made::kNoLimits})
                  .message,
              HasSubstr("in the middle of its pixel data"));
}

TEST(PnmTest, TimeOfTextIsBounded) {
  EXPECT_THAT(
      made::decode(file_of("P2 1 1 255 1"), {.limits = {.time_max = std::chrono::milliseconds(0)}})
          .message,
      HasSubstr("longer than the limit"));
}

}  // namespace
}  // namespace penstock
