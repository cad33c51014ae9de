#include "codec/versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

TEST(VersionsTest, EveryLibraryOfTheBuildIsNamedWithItsVersion) {
  const std::string text = codec_versions();
  EXPECT_THAT(
      text,
      MatchesRegex("libjpeg(-turbo)? [0-9.]+, libpng [0-9.]+, zlib [0-9.]+(, [a-z]+ [0-9.]+)*"));
#ifdef PENSTOCK_WEBP
  EXPECT_THAT(text, HasSubstr("libwebp "));
#endif
#ifdef PENSTOCK_DEFLATE
  EXPECT_THAT(text, HasSubstr("libdeflate "));
#endif
#ifdef PENSTOCK_SNDFILE
  EXPECT_THAT(text, HasSubstr("libsndfile "));
#endif
#ifdef PENSTOCK_SOXR
  EXPECT_THAT(text, HasSubstr("libsoxr "));
#endif
#ifdef PENSTOCK_ZSTD
  EXPECT_THAT(text, HasSubstr("zstd "));
#endif
#ifdef PENSTOCK_HIGHWAY
  EXPECT_THAT(text, HasSubstr("highway "));
#endif
}

}  // namespace
}  // namespace penstock
