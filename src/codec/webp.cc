#ifdef PENSTOCK_WEBP
#include <webp/decode.h>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
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
      return "it uses a feature that libwebp does not support";
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

/// From the EXIF chunk, which follows the pixels.
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

/// The image to decode: the file itself, or the first frame of an animation, which may cover only a
/// part of the canvas.
struct WebpFrame {
  EncodedBytes bytes = {};
  Region place = {};  // on the canvas
  bool alpha = false;
};

std::uint32_t little24(EncodedBytes bytes, std::size_t at) {
  return little16(bytes, at) | byte_at(bytes, at + 2) << 16U;
}

/// The first frame of an animation (ANMF): its place, and its chunks, which libwebp reads as a file
/// without a header.
Result<WebpFrame> first_frame(EncodedBytes bytes, const WebPBitstreamFeatures& canvas) {
  constexpr std::size_t kFrameHeader = 16;
  const auto damaged = [](const char* what) {
    return Failure{.message = fmt::format("the WebP is an animation {}", what)};
  };
  for (std::size_t at = kRiffHeader; bytes.size() - at >= kChunkHeader;) {
    const std::size_t length = little32(bytes, at + 4);
    if (length > bytes.size() - at - kChunkHeader) break;
    const EncodedBytes data = bytes.subspan(at + kChunkHeader, length);
    if (has_text(bytes, at, "ANMF")) {
      if (length < kFrameHeader) return damaged("whose first frame is damaged");
      const Region place{.x = std::int64_t{little24(data, 0)} * 2,
                         .y = std::int64_t{little24(data, 3)} * 2,
                         .width = std::int64_t{little24(data, 6)} + 1,
                         .height = std::int64_t{little24(data, 9)} + 1};
      WebpFrame frame{.bytes = data.subspan(kFrameHeader), .place = place};
      WebPBitstreamFeatures features{};
      const VP8StatusCode status = WebPGetFeatures(
          reinterpret_cast<const std::uint8_t*>(frame.bytes.data()), frame.bytes.size(), &features);
      if (status != VP8_STATUS_OK) return refused(status);
      if (features.width != place.width || features.height != place.height ||
          place.x + place.width > canvas.width || place.y + place.height > canvas.height)
        return damaged("whose first frame does not fit into it");
      frame.alpha = features.has_alpha != 0;
      return frame;
    }
    at += std::min(kChunkHeader + length + length % 2, bytes.size() - at);
  }
  return damaged("without a frame");
}

Result<WebpFrame> frame_of(EncodedBytes bytes, const WebPBitstreamFeatures& features) {
  if (features.has_animation != 0) return first_frame(bytes, features);
  return WebpFrame{.bytes = bytes,
                   .place = {.x = 0, .y = 0, .width = features.width, .height = features.height},
                   .alpha = features.has_alpha != 0};
}

/// The region and two pixels around it, from even columns and rows on: chroma is stored at half the
/// size, and its upsampling reads one sample to each side.
Region with_margin(const Region& part, const Region& frame) {
  const std::int64_t left = std::max<std::int64_t>(0, part.x - 2) / 2 * 2;
  const std::int64_t top = std::max<std::int64_t>(0, part.y - 2) / 2 * 2;
  const std::int64_t right = std::min(frame.width, part.x + part.width + 2);
  const std::int64_t bottom = std::min(frame.height, part.y + part.height + 2);
  return {.x = left, .y = top, .width = right - left, .height = bottom - top};
}

/// Decodes, checking the time between pieces of a large file; the limit of pixels bounds the time
/// of one piece. Nullopt if it took too long.
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
  // The length in the RIFF header counts from after itself.
  if (bytes.size() < kRiffHeader + kChunkHeader || little32(bytes, 4) > bytes.size() - 8) {
    return Failure{
        .message = fmt::format("the WebP ends after {} bytes, but should have {}", bytes.size(),
                               bytes.size() < 8 ? 0U : little32(bytes, 4) + 8ULL),
        .remedy = "fetch the file again: it is truncated"};
  }
  WebPBitstreamFeatures features{};
  const VP8StatusCode status =
      WebPGetFeatures(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), &features);
  if (status != VP8_STATUS_OK) return refused(status);
  if (features.width <= 0 || features.height <= 0)
    return Failure{.message = fmt::format("the WebP says it has {} x {} pixels", features.width,
                                          features.height)};
  if (const auto frame = frame_of(bytes, features); !frame) return frame.failure();
  ImageInfo info;
  info.format = ImageFormat::webp;
  info.width = features.width;
  info.height = features.height;
  // If the first frame of an animation does not cover the canvas, the rest is transparent.
  info.channels = features.has_alpha != 0 ? 4 : 3;
  info.orientation = orientation_of(bytes);
  return info;
}

namespace {

/// `part` of the frame, in its own pixels: RGB, or RGBA if `alpha`.
Result<Pixels> decode_frame(const WebpFrame& frame, const Region& part, bool alpha,
                            std::chrono::steady_clock::time_point deadline, Scratch& scratch) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    return Failure{.message = "libwebp has a different version than its headers"};
  const VP8StatusCode looked = WebPGetFeatures(
      reinterpret_cast<const std::uint8_t*>(frame.bytes.data()), frame.bytes.size(), &config.input);
  if (looked != VP8_STATUS_OK) return refused(looked);
  Region area = with_margin(part, frame.place);
  // In a lossy file alpha is a separate plane, each row of which may be stored as the difference
  // from the row above. If libwebp starts further down, it takes that row for zero.
  constexpr int kLossless = 2;
  if (alpha && config.input.format != kLossless) {
    area.height += area.y;
    area.y = 0;
  }
  if (area.width != frame.place.width || area.height != frame.place.height) {
    config.options.use_cropping = 1;
    config.options.crop_left = static_cast<int>(area.x);
    config.options.crop_top = static_cast<int>(area.y);
    config.options.crop_width = static_cast<int>(area.width);
    config.options.crop_height = static_cast<int>(area.height);
  }
  const std::size_t channels = alpha ? 4 : 3;
  const std::size_t stride = static_cast<std::size_t>(area.width) * channels;
  std::byte* const rows = allocate_rows(stride, area.height, scratch);
  config.output.colorspace = alpha ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = reinterpret_cast<std::uint8_t*>(rows);
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size = stride * static_cast<std::size_t>(area.height);
  const auto status = decode_in_time(frame.bytes, config, deadline);
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

/// `part` of the canvas, which is empty except for the frame.
Result<Pixels> decode_onto_canvas(const WebpFrame& frame, const Region& part, bool alpha,
                                  std::chrono::steady_clock::time_point deadline,
                                  Scratch& scratch) {
  const Region& place = frame.place;
  const std::int64_t left = std::max(part.x, place.x);
  const std::int64_t top = std::max(part.y, place.y);
  const Region both{.x = left - place.x,
                    .y = top - place.y,
                    .width = std::min(part.x + part.width, place.x + place.width) - left,
                    .height = std::min(part.y + part.height, place.y + place.height) - top};
  if (both.width == part.width && both.height == part.height)
    return decode_frame(frame, both, alpha, deadline, scratch);
  Pixels pixels{.width = part.width, .height = part.height, .channels = alpha ? 4 : 3};
  const auto pixel = static_cast<std::size_t>(pixels.channels);
  pixels.stride = static_cast<std::size_t>(part.width) * pixel;
  std::byte* const out = allocate_rows(pixels.stride, part.height, scratch);
  std::memset(out, 0, pixels.stride * static_cast<std::size_t>(part.height));
  pixels.data = out;
  if (both.width <= 0 || both.height <= 0) return pixels;
  // A frame without alpha is opaque.
  const auto decoded = decode_frame(frame, both, alpha && frame.alpha, deadline, scratch);
  if (!decoded) return decoded;
  const Pixels inside = with_channels(*decoded, pixels.channels, scratch);
  for (std::int64_t y = 0; y < inside.height; ++y)
    std::memcpy(out + static_cast<std::size_t>(top - part.y + y) * pixels.stride +
                    static_cast<std::size_t>(left - part.x) * pixel,
                inside.data + static_cast<std::size_t>(y) * inside.stride,
                static_cast<std::size_t>(inside.width) * pixel);
  return pixels;
}

}  // namespace

Result<Pixels> decode_webp(EncodedBytes bytes, const ImageInfo& stored,
                           const StoredRequest& request, Scratch& scratch) {
  WebPBitstreamFeatures features{};
  const VP8StatusCode looked =
      WebPGetFeatures(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), &features);
  if (looked != VP8_STATUS_OK) return refused(looked);
  if (features.width != stored.width || features.height != stored.height)
    return Failure{.message = "the WebP changed between probing and decoding"};
  const auto frame = frame_of(bytes, features);
  if (!frame) return frame.failure();
  // If the file has no alpha it is not requested: a damaged palette would become transparent.
  const bool alpha = request.channels % 2 == 0 && features.has_alpha != 0;
  return decode_onto_canvas(*frame, request.part, alpha, request.deadline, scratch);
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
