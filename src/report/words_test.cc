#include "report/words.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(WordsTest, NumbersReadAsPeopleWriteThem) {
  EXPECT_EQ(percent_text(0.384), "38 %");
  EXPECT_EQ(percent_text(0.004), "0.4 %");
  EXPECT_EQ(percent_text(0), "0 %");
  EXPECT_EQ(percent_text(0.0096), "1 %");
  EXPECT_EQ(seconds_text(0.000042), "42 us");
  EXPECT_EQ(seconds_text(0.0042), "4.2 ms");
  EXPECT_EQ(seconds_text(0.042), "42 ms");
  EXPECT_EQ(seconds_text(0.9999), "1.00 s");
  EXPECT_EQ(seconds_text(4.2), "4.20 s");
  EXPECT_EQ(seconds_text(125), "2 min 5 s");
  EXPECT_EQ(seconds_text(8000), "2 h 13 min");
  EXPECT_EQ(bytes_text(12), "12 B");
  EXPECT_EQ(bytes_text(1234), "1.2 KB");
  EXPECT_EQ(bytes_text(999'999), "1.0 MB");
  EXPECT_EQ(bytes_text(12'345'678), "12 MB");
  EXPECT_EQ(number_text(7), "7");
  EXPECT_EQ(number_text(123), "123");
  EXPECT_EQ(number_text(1234567), "1,234,567");
  EXPECT_EQ(rate_text(12345.6), "12,346");
  EXPECT_EQ(rate_text(12.34), "12.3");
  EXPECT_EQ(rate_text(0.123), "0.12");
  EXPECT_EQ(counted_text(1, "step"), "1 step");
  EXPECT_EQ(counted_text(1500, "step"), "1,500 steps");
}

TEST(WordsTest, ControlCharactersBecomeSpaces) {
  EXPECT_EQ(without_controls("a\x1b]0;b\n\x7f\tä"), "a ]0;b   ä");
  EXPECT_EQ(without_controls("a\x1b\nb", true), "a \nb");
}

TEST(WordsTest, APlainNameHasNoNumberAndNoArguments) {
  EXPECT_EQ(plain_name("map \"features\" (Sample) -> Sample#12"), "features");
  EXPECT_EQ(plain_name("map (i64) -> i64#1"), "map");
  EXPECT_EQ(plain_name("image: decode resize(64, 64) random_flip(0.5), seed=7#2"),
            "image: decode resize random_flip");
  EXPECT_EQ(plain_name("range(0, 100, 1)"), "range");
  EXPECT_EQ(plain_name("image_folder(a (b), 10 files)"), "image_folder");
  EXPECT_EQ(plain_name("decode#3"), "decode");
  EXPECT_EQ(plain_name("(x)"), "(x)");
}

}  // namespace
}  // namespace penstock
