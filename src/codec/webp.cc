#ifdef PENSTOCK_WEBP
#include <webp/decode.h>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>

#include "codec/formats.h"
#include "codec/pixels.h"

namespace penstock {

#ifdef PENSTOCK_WEBP

namespace {

constexpr std::size_t kRiffHeader = 12;
constexpr std::size_t kChunkHeader = 8;

std::string_view reason(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "out of memory";
    case VP8_STATUS_BITSTREAM_ERROR:
      return "its data is damaged";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it uses something that libwebp does not know";
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "it is truncated";
    default:
      return "libwebp refuses it";
  }
}

Failure refused(VP8StatusCode status) {
  return Failure{.message = fmt::format("the WebP cannot be decoded: {}", reason(status))};
}

/// From the EXIF chunk, which stands behind the pixels.
int orientation_of(EncodedBytes bytes) {
  constexpr unsigned kExifFlag = 0x08;
  constexpr std::string_view kPrefix("Exif\0\0", 6);
  if (!has_text(bytes, kRiffHeader, "VP8X") || bytes.size() < kRiffHeader + kChunkHeader + 10 ||
      (byte_at(bytes, kRiffHeader + kChunkHeader) & kExifFlag) == 0)
    return 1;
  std::size_t at = kRiffHeader;
  while (bytes.size() - at >= kChunkHeader) {
    const std::size_t length = little32(bytes, at + 4);
    if (length > bytes.size() - at - kChunkHeader) return 1;
    if (has_text(bytes, at, "EXIF")) {
      EncodedBytes exif = bytes.subspan(at + kChunkHeader, length);
      // Some writers keep the prefix that JPEG needs.
      if (has_text(exif, 0, kPrefix)) exif = exif.subspan(kPrefix.size());
      return exif_orientation(exif);
    }
    const std::size_t step = kChunkHeader + length + length % 2;
    if (step > bytes.size() - at) return 1;
    at += step;
  }
  return 1;
}

/// The part and two pixels around it, from even columns and rows on: chroma is stored at half the
/// size, and its upsampling looks one sample to each side.
Region with_margin(const Region& part, const ImageInfo& stored) {
  const std::int64_t left = std::max<std::int64_t>(0, part.x - 2) / 2 * 2;
  const std::int64_t top = std::max<std::int64_t>(0, part.y - 2) / 2 * 2;
  const std::int64_t right = std::min(stored.width, part.x + part.width + 2);
  const std::int64_t bottom = std::min(stored.height, part.y + part.height + 2);
  return {.x = left, .y = top, .width = right - left, .height = bottom - top};
}

/// Decodes, looking at the time between pieces of a large file; what one piece can take is bounded
/// by the limit of pixels. Nothing: it took too long.
std::optional<VP8StatusCode> decode_in_time(EncodedBytes bytes, WebPDecoderConfig& config,
                                            std::chrono::steady_clock::time_point deadline) {
  constexpr std::size_t kAtOnce = std::size_t{1} << 20;
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
  if (bytes.size() <= kAtOnce) return WebPDecode(data, bytes.size(), &config);
  const std::unique_ptr<WebPIDecoder, decltype(&WebPIDelete)> decoder(
      WebPIDecode(nullptr, 0, &config), &WebPIDelete);
  if (!decoder) return VP8_STATUS_OUT_OF_MEMORY;
  VP8StatusCode status = VP8_STATUS_SUSPENDED;
  for (std::size_t given = 0; status == VP8_STATUS_SUSPENDED && given < bytes.size();) {
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    given = std::min(bytes.size(), given + kPiece);
    status = WebPIUpdate(decoder.get(), data, given);
  }
  return status;
}

}  // namespace

Result<ImageInfo> probe_webp(EncodedBytes bytes) {
  // The length of the RIFF frame counts from behind itself.
  if (bytes.size() < kRiffHeader + kChunkHeader || little32(bytes, 4) > bytes.size() - 8) {
    return Failure{
        .message = fmt::format("the WebP ends after {} bytes, and should have {}", bytes.size(),
                               bytes.size() < 8 ? 0U : little32(bytes, 4) + 8ULL),
        .remedy = "fetch the file again: it is truncated"};
  }
  WebPBitstreamFeatures features{};
  const VP8StatusCode status =
      WebPGetFeatures(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), &features);
  if (status != VP8_STATUS_OK) return refused(status);
  if (features.has_animation != 0) {
    return Failure{.message = "the WebP is an animation",
                   .remedy = "take single pictures out of it, as with webpmux -get frame 1"};
  }
  if (features.width <= 0 || features.height <= 0)
    return Failure{.message = fmt::format("the WebP says it has {} x {} pixels", features.width,
                                          features.height)};
  ImageInfo info;
  info.format = ImageFormat::webp;
  info.width = features.width;
  info.height = features.height;
  info.channels = features.has_alpha != 0 ? 4 : 3;
  info.orientation = orientation_of(bytes);
  return info;
}

Result<Pixels> decode_webp(EncodedBytes bytes, const ImageInfo& stored,
                           const StoredRequest& request, Scratch& scratch) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    return Failure{.message = "libwebp is of another version than its headers"};
  const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const VP8StatusCode looked = WebPGetFeatures(data, bytes.size(), &config.input);
  if (looked != VP8_STATUS_OK) return refused(looked);
  if (config.input.width != stored.width || config.input.height != stored.height)
    return Failure{.message = "the WebP is not the one that was looked at before"};
  const Region& part = request.part;
  const Region area = with_margin(part, stored);
  if (area.width != stored.width || area.height != stored.height) {
    config.options.use_cropping = 1;
    config.options.crop_left = static_cast<int>(area.x);
    config.options.crop_top = static_cast<int>(area.y);
    config.options.crop_width = static_cast<int>(area.width);
    config.options.crop_height = static_cast<int>(area.height);
  }
  const bool alpha = request.channels % 2 == 0;
  const std::size_t channels = alpha ? 4 : 3;
  const std::size_t stride = static_cast<std::size_t>(area.width) * channels;
  std::byte* const rows = allocate_rows(stride, area.height, scratch);
  config.output.colorspace = alpha ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = reinterpret_cast<std::uint8_t*>(rows);
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size = stride * static_cast<std::size_t>(area.height);
  const auto status = decode_in_time(bytes, config, request.deadline);
  WebPFreeDecBuffer(&config.output);
  if (!status)
    return Failure{.message = "decoding the WebP took longer than the limit",
                   .remedy = "raise time_max if such files are meant to be read"};
  if (*status != VP8_STATUS_OK) return refused(*status);
  return Pixels{.data = rows + static_cast<std::size_t>(part.y - area.y) * stride +
                        static_cast<std::size_t>(part.x - area.x) * channels,
                .width = part.width,
                .height = part.height,
                .channels = static_cast<int>(channels),
                .stride = stride};
}

#else

namespace {

Failure no_webp() {
  return Failure{.message = "this penstock was built without WebP",
                 .remedy = "install libwebp and build again, or convert the file to PNG"};
}

}  // namespace

Result<ImageInfo> probe_webp(EncodedBytes) {
  return no_webp();
}
Result<Pixels> decode_webp(EncodedBytes, const ImageInfo&, const StoredRequest&, Scratch&) {
  return no_webp();
}

#endif

}  // namespace penstock
