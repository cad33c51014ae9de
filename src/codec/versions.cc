#include "codec/versions.h"

// The order matters: libjpeg needs FILE.
#include <cstdio>

#include <jpeglib.h>
#include <png.h>
#ifdef PENSTOCK_DEFLATE
#include <libdeflate.h>
#endif
#ifdef PENSTOCK_WEBP
#include <webp/decode.h>
#endif
#ifdef PENSTOCK_SNDFILE
#include <sndfile.h>
#endif
#ifdef PENSTOCK_SOXR
#include <soxr.h>
#endif
#include <zlib.h>
#ifdef PENSTOCK_ZSTD
#include <zstd.h>
#endif
#ifdef PENSTOCK_HIGHWAY
#include <hwy/highway.h>
#endif
#include <fmt/format.h>

#include <string_view>

namespace penstock {
namespace {

// libjpeg-turbo defines its version as bare tokens.
#define PENSTOCK_TEXT_OF(words) #words
#define PENSTOCK_TEXT(words) PENSTOCK_TEXT_OF(words)
#ifdef LIBJPEG_TURBO_VERSION
constexpr const char* kJpeg = "libjpeg-turbo " PENSTOCK_TEXT(LIBJPEG_TURBO_VERSION);
#else
constexpr const char* kJpeg = "libjpeg " PENSTOCK_TEXT(JPEG_LIB_VERSION);
#endif

}  // namespace

std::string codec_versions() {
  std::string text =
      fmt::format("{}, libpng {}, zlib {}", kJpeg, png_get_libpng_ver(nullptr), zlibVersion());
#ifdef PENSTOCK_WEBP
  const auto webp = static_cast<unsigned>(WebPGetDecoderVersion());
  text += fmt::format(", libwebp {}.{}.{}", webp >> 16U, webp >> 8U & 255U, webp & 255U);
#endif
#ifdef PENSTOCK_DEFLATE
  text += ", libdeflate " LIBDEFLATE_VERSION_STRING;
#endif
#ifdef PENSTOCK_SNDFILE
  // "libsndfile-1.2.0"
  text += fmt::format(", libsndfile {}", std::string_view(sf_version_string()).substr(11));
#endif
#ifdef PENSTOCK_SOXR
  // "libsoxr-0.1.3"
  text += fmt::format(", libsoxr {}", std::string_view(soxr_version()).substr(8));
#endif
#ifdef PENSTOCK_ZSTD
  text += fmt::format(", zstd {}", ZSTD_versionString());
#endif
#ifdef PENSTOCK_HIGHWAY
  text += fmt::format(", highway {}.{}.{}", HWY_MAJOR, HWY_MINOR, HWY_PATCH);
#endif
  return text;
}

}  // namespace penstock
