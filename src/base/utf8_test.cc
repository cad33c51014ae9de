#include "base/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace penstock {
namespace {

/// The definition: a code point in its shortest form.
std::string encoded(std::uint32_t code) {
  std::string text;
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  }
  return text;
}

TEST(Utf8Test, EveryCodePointButSurrogatesIsAccepted) {
  for (std::uint32_t code = 0; code < 0x110000; ++code) {
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    ASSERT_EQ(is_utf8(encoded(code)), !surrogate) << code;
    ASSERT_EQ(is_utf8("seven.." + encoded(code) + "and more"), !surrogate) << code;
  }
  EXPECT_FALSE(is_utf8(encoded(0x110000)));
}

TEST(Utf8Test, CutAndOverlongCharactersAreRejected) {
  for (const std::uint32_t code : {0x80U, 0x7FFU, 0x800U, 0xFFFFU, 0x10000U, 0x10FFFFU}) {
    const std::string text = encoded(code);
    for (std::size_t bytes = 1; bytes < text.size(); ++bytes) {
      EXPECT_FALSE(is_utf8(text.substr(0, bytes)));
      EXPECT_FALSE(is_utf8(text.substr(0, bytes) + "a"));
    }
    EXPECT_FALSE(is_utf8(text.substr(1)));
  }
  for (const char* const overlong : {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF"})
    EXPECT_FALSE(is_utf8(overlong));
  EXPECT_TRUE(is_utf8(""));
}

TEST(Utf8Test, TheFirstWrongByteIsFound) {
  EXPECT_EQ(utf8_prefix("twelve bytes"), 12U);
  EXPECT_EQ(utf8_prefix("\xC3\xA4hm"), 4U);
  EXPECT_EQ(utf8_prefix("nine byte\xFF and others"), 9U);
  EXPECT_EQ(utf8_prefix("cut \xE2\x82"), 4U);
  EXPECT_EQ(utf8_prefix(""), 0U);
}

}  // namespace
}  // namespace penstock
