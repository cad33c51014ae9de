#pragma once
// Encoded images. One call reads the header, another decodes the requested region. Pure functions
// of their bytes; thread-safe.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/result.h"
#include "penstock/tensor.h"
#include "sample/scratch.h"

namespace penstock {

enum class ImageFormat : std::uint8_t { jpeg, png, webp, bmp, pnm, npy };
/// "JPEG", "PNG", "WebP", "BMP", "PPM/PGM", "npy".
std::string_view image_format_name(ImageFormat format);
/// The extensions of this format, in lower case, the most common first.
std::span<const std::string_view> image_extensions(ImageFormat format);
/// The extensions of all formats.
std::vector<std::string> image_extensions();
/// Detects the format from the first bytes; nullopt if it is not a supported one.
std::optional<ImageFormat> image_format_of(std::span<const std::byte> bytes);

/// Limits against files that claim more than they contain.
struct ImageLimits {
  std::uint64_t pixels_max = std::uint64_t{1} << 27;  // 128 M: 11,585 x 11,585
  std::uint64_t side_max = 65'535;                    // for width and height
  std::uint64_t bytes_max = std::uint64_t{1} << 30;   // encoded
  std::chrono::milliseconds time_max{10'000};         // for decoding, and again for the ops
};

/// The content of the header. Width and height are as displayed: after EXIF orientation.
struct ImageInfo {
  ImageFormat format = ImageFormat::png;
  std::int64_t width = 0;
  std::int64_t height = 0;
  int channels = 3;  // 1, 2 (gray and alpha), 3 or 4; palettes are looked up, CMYK counts as RGB
  int bits = 8;      // of one value: 8 or 16 (fewer count as 8); npy may have any supported dtype
  int orientation = 1;      // EXIF: 1 to 8; 1 if there is none
  bool cmyk = false;        // stored as CMYK or YCCK; decoded as RGB
  Dtype dtype = Dtype::u8;  // u8, or u16 for 16 bits; for npy the stored one
};

/// Reads only the header. A Failure says what is wrong with it.
Result<ImageInfo> probe_image(std::span<const std::byte> bytes, const ImageLimits& limits = {});

/// A rectangle of an image, in pixels as displayed.
struct Region {
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool operator==(const Region&) const = default;
};

struct DecodeRequest {
  /// 1 (gray), 3 (RGB), 4 (RGB and alpha), or 0: those of ImageInfo. Alpha is dropped, never
  /// multiplied in; the gray of RGB is (299 R + 587 G + 114 B + 500) / 1000, but for a JPEG the
  /// stored luma. For npy, dtypes other than u8 and u16 are only copied: no gray, no alpha.
  int channels = 3;
  /// The requested region; none: the whole image. Its pixels equal those of a full decode.
  std::optional<Region> region = {};
  /// JPEG may decode at 1/2, 1/4 or 1/8 as long as the region is still at least this large in both
  /// directions; 0: never. Pixels then differ from a full decode.
  std::int64_t fast_width = 0;
  std::int64_t fast_height = 0;
  bool keep_16_bit = false;  // otherwise 16 bits become 8: the upper ones (npy: always as stored)
  ImageLimits limits = {};
};

/// Decoded pixels: rows of interleaved values (RGBRGB...).
struct Pixels {
  const std::byte* data = nullptr;
  std::int64_t width = 0;
  std::int64_t height = 0;
  int channels = 3;
  Dtype dtype = Dtype::u8;
  std::size_t stride = 0;  // bytes from one row to the next
  /// At least this many bytes after the last row may be read (their content is undefined), so that
  /// vector loads need no special case at the end.
  static constexpr std::size_t kSlack = 64;
};

/// Decodes into memory of `scratch`, valid until the caller's frame ends. `info` is the result of
/// probe_image for the same bytes.
Result<Pixels> decode_image(std::span<const std::byte> bytes, const ImageInfo& info,
                            const DecodeRequest& request, Scratch& scratch);

}  // namespace penstock
