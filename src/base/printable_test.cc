#include "base/printable.h"

#include <gtest/gtest.h>

#include <string>

#include "base/json.h"

namespace penstock {
namespace {

TEST(PrintableTest, TextStaysAsItIs) {
  EXPECT_EQ(printable("cat/photo 1.jpg"), "cat/photo 1.jpg");
  EXPECT_EQ(printable("Käse/写真/🐈.png"), "Käse/写真/🐈.png");
  EXPECT_EQ(printable(""), "");
}

TEST(PrintableTest, BytesThatAreNotTextAreEscaped) {
  EXPECT_EQ(printable("a\xff.jpg"), "a\\xff.jpg");
  EXPECT_EQ(printable("two\nlines\x7f"), "two\\x0alines\\x7f");
  EXPECT_EQ(printable("cut\xe5\x86"), "cut\\xe5\\x86");
  EXPECT_EQ(printable("\xc0\xaf\xed\xa0\x80"), "\\xc0\\xaf\\xed\\xa0\\x80");
}

TEST(PrintableTest, DifferentNamesPrintDifferently) {
  EXPECT_NE(printable("a\xff"), printable("a\\xff"));
}

TEST(PrintableTest, AnyTwoBytesGiveValidJsonText) {
  for (int first = 0; first < 256; ++first)
    for (int second = 0; second < 256; ++second) {
      const std::string bytes{static_cast<char>(first), static_cast<char>(second)};
      EXPECT_NO_THROW((void)Json(printable(bytes)).dump());
    }
}

}  // namespace
}  // namespace penstock
