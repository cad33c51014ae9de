#pragma once
// The interface between codec.cc and each format. Sizes and regions are as stored: before EXIF
// orientation. A decoder returns the channels that cost it least; codec.cc converts them.

#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>

#include "codec/codec.h"
#include "penstock/result.h"
#include "sample/scratch.h"

namespace penstock {

using EncodedBytes = std::span<const std::byte>;

struct StoredRequest {
  Region part = {};  // inside the image, not empty
  int channels = 3;  // 1, 3 or 4
  std::int64_t fast_width = 0;
  std::int64_t fast_height = 0;
  bool keep_16_bit = false;
  std::chrono::steady_clock::time_point deadline = {};
};

/// Everything that differs between formats.
struct FormatEntry {
  ImageFormat format;
  std::string_view name;
  std::span<const std::string_view> extensions;  // lower case, the usual one first
  bool (*begins)(EncodedBytes bytes);            // by its magic number
  Result<ImageInfo> (*probe)(EncodedBytes bytes);
  Result<Pixels> (*decode)(EncodedBytes bytes, const ImageInfo& stored,
                           const StoredRequest& request, Scratch& scratch);
};
/// One entry for each ImageFormat, in the order of that enum. No file matches two formats.
std::span<const FormatEntry> image_formats();
const FormatEntry& format_entry(ImageFormat format);

/// Headers only: allocates no memory, and does not check sizes against limits.
Result<ImageInfo> probe_jpeg(EncodedBytes bytes);
Result<ImageInfo> probe_png(EncodedBytes bytes);
Result<ImageInfo> probe_webp(EncodedBytes bytes);
Result<ImageInfo> probe_bmp(EncodedBytes bytes);
Result<ImageInfo> probe_pnm(EncodedBytes bytes);
Result<ImageInfo> probe_npy(EncodedBytes bytes);

/// `stored` is the result of the probe of the same format.
Result<Pixels> decode_jpeg(EncodedBytes bytes, const ImageInfo& stored,
                           const StoredRequest& request, Scratch& scratch);
Result<Pixels> decode_png(EncodedBytes bytes, const ImageInfo& stored, const StoredRequest& request,
                          Scratch& scratch);
Result<Pixels> decode_webp(EncodedBytes bytes, const ImageInfo& stored,
                           const StoredRequest& request, Scratch& scratch);
Result<Pixels> decode_bmp(EncodedBytes bytes, const ImageInfo& stored, const StoredRequest& request,
                          Scratch& scratch);
Result<Pixels> decode_pnm(EncodedBytes bytes, const ImageInfo& stored, const StoredRequest& request,
                          Scratch& scratch);
Result<Pixels> decode_npy(EncodedBytes bytes, const ImageInfo& stored, const StoredRequest& request,
                          Scratch& scratch);

/// For a PNG whose rows do not match their checksum.
inline Failure wrong_png_sum() {
  return Failure{.message = "the PNG is damaged: its rows do not match their checksum (Adler-32)",
                 .remedy = "fetch the file again, or write it again"};
}

/// PNG decoded by libpng: every kind of PNG, but slower. The chunks have been checked.
Result<Pixels> decode_png_plainly(EncodedBytes bytes, const StoredRequest& request,
                                  Scratch& scratch);

/// The orientation, 1 to 8, in a block of EXIF data (from its "II" or "MM" on); 1 if it has none or
/// is damaged: damaged metadata does not make an image fail.
int exif_orientation(EncodedBytes exif);

/// Whole numbers in untrusted bytes; the caller has checked the bounds.
inline unsigned byte_at(EncodedBytes bytes, std::size_t at) {
  return std::to_integer<unsigned>(bytes[at]);
}
inline std::uint32_t big16(EncodedBytes bytes, std::size_t at) {
  return byte_at(bytes, at) << 8U | byte_at(bytes, at + 1);
}
inline std::uint32_t big32(EncodedBytes bytes, std::size_t at) {
  return big16(bytes, at) << 16U | big16(bytes, at + 2);
}
inline std::uint32_t little16(EncodedBytes bytes, std::size_t at) {
  return byte_at(bytes, at) | byte_at(bytes, at + 1) << 8U;
}
inline std::uint32_t little32(EncodedBytes bytes, std::size_t at) {
  return little16(bytes, at) | little16(bytes, at + 2) << 16U;
}

/// Whether `text` is at `at`.
inline bool has_text(EncodedBytes bytes, std::size_t at, std::string_view text) {
  if (at > bytes.size() || text.size() > bytes.size() - at) return false;
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + at, text.size()) == text;
}

}  // namespace penstock
