#include "codec/ogg_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "codec/audio_for_tests.h"

namespace penstock {
namespace {

using made::AudioBytes;
using testing::HasSubstr;

/// A page of 10 bytes.
AudioBytes page(std::uint8_t flags, std::uint8_t position, std::uint8_t stream = 7) {
  AudioBytes bytes(27);
  std::ranges::copy(std::string_view("OggS"), bytes.begin());
  bytes[5] = flags;
  bytes[6] = position;
  bytes[14] = stream;
  bytes[26] = 1;
  bytes.push_back(10);
  for (std::uint8_t i = 0; i < 10; ++i) bytes.push_back(i);
  made::sign_ogg_page(bytes, 0);
  return bytes;
}
AudioBytes joined(const AudioBytes& a, const AudioBytes& b) {
  AudioBytes both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}
Result<OggPages> check(const AudioBytes& file) {
  return check_ogg_pages(made::audio_bytes(file));
}
std::string refusal(const AudioBytes& file) {
  const auto pages = check(file);
  return pages ? "accepted" : pages.failure().message;
}

TEST(OggPagesTest, ACompleteFileHasItsLastPositionAndEnds) {
  const auto pages = check(joined(page(2, 10), page(4, 20)));
  ASSERT_TRUE(pages) << pages.failure().message;
  EXPECT_EQ((*pages).position, 20);
  EXPECT_TRUE((*pages).ended);
}

TEST(OggPagesTest, AFileThatIsCutOffHasThePositionOfItsLastCompletePage) {
  const AudioBytes file = joined(page(2, 10), page(4, 20));
  const std::size_t first = file.size() / 2;
  for (std::size_t bytes = 0; bytes < file.size(); ++bytes) {
    const auto pages = check({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(bytes)});
    ASSERT_TRUE(pages) << bytes << ": " << pages.failure().message;
    EXPECT_FALSE((*pages).ended) << bytes;
    EXPECT_EQ((*pages).position, bytes < first ? 0 : 10) << bytes;
  }
}

TEST(OggPagesTest, EveryChangedBitIsNoticed) {
  const AudioBytes file = page(4, 20);
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    AudioBytes changed = file;
    changed[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    const auto pages = check(changed);
    EXPECT_TRUE(!pages || !(*pages).ended) << bit;
  }
}

TEST(OggPagesTest, SeveralStreamsAndOtherBytesAreRefused) {
  EXPECT_THAT(refusal(joined(page(2, 10), page(4, 20, 8))), HasSubstr("more than one stream"));
  EXPECT_THAT(refusal(joined(page(4, 10), page(4, 20))), HasSubstr("more than one stream"));
  EXPECT_THAT(refusal(joined(page(4, 10), {1, 2, 3})), HasSubstr("byte 38 is not within a page"));
}

#ifdef PENSTOCK_SNDFILE
TEST(OggPagesTest, TheChecksumIsThatOfLibogg) {
  EXPECT_EQ(refusal(made::vorbis()), "accepted");
}
#endif

}  // namespace
}  // namespace penstock
