#include "base/digest.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <string_view>

namespace penstock {
namespace {

std::string digest_of(std::initializer_list<std::string_view> parts) {
  Digest digest;
  for (const std::string_view part : parts) digest.add(part);
  return digest.text();
}

TEST(DigestTest, ContentOrderAndDivisionAllCount) {
  const std::set<std::string> digests{
      digest_of({}),
      digest_of({""}),
      digest_of({"", ""}),
      digest_of({"ab", "c"}),
      digest_of({"a", "bc"}),
      digest_of({"c", "ab"}),
      digest_of({"abc"}),
      digest_of({std::string_view("abc\0", 4)}),
      digest_of({"abcdefgh"}),
      digest_of({"abcdefghi"}),
      digest_of({"abcdefg", "h"}),
  };
  EXPECT_EQ(digests.size(), 11U);
}

TEST(DigestTest, KeepsItsMeaningAcrossReleases) {
  Digest digest;
  EXPECT_EQ(digest.text(), "0000000000000000");
  digest.add("penstock");
  digest.add(std::uint64_t{7});
  EXPECT_EQ(digest.text(), "7a684cbd5dd0d51d");
}

}  // namespace
}  // namespace penstock
