#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

TEST(Crc32cTest, MatchesThePublishedValues) {
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
}

TEST(Crc32cTest, PartsGiveTheChecksumOfTheWhole) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 37);
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(crc32c(text.substr(cut), crc32c(text.substr(0, cut))), crc32c(text));
}

std::string some_bytes(std::size_t count) {
  std::string text;
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    text += static_cast<char>(state >> 24);
  }
  return text;
}

TEST(Crc32cTest, EveryLengthGivesTheChecksumOfThePlainWay) {
  const std::string text = some_bytes(8000);
  for (std::size_t length = 0; length <= 1300; ++length)
    ASSERT_EQ(crc32c(text.substr(3, length), 7), crc32c_plain(text.substr(3, length), 7)) << length;
  for (std::size_t length = 3000; length <= text.size(); length += 61)
    ASSERT_EQ(crc32c(text.substr(0, length)), crc32c_plain(text.substr(0, length))) << length;
}

TEST(Crc32cTest, OneChangedBitChangesIt) {
  std::string text = some_bytes(700);
  const std::uint32_t right = crc32c(text);
  for (char& byte : text) {
    byte = static_cast<char>(byte ^ 16);
    EXPECT_NE(crc32c(text), right);
    byte = static_cast<char>(byte ^ 16);
  }
}

}  // namespace
}  // namespace penstock
