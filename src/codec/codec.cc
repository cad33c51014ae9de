#include "codec/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codec/formats.h"
#include "codec/pixels.h"

namespace penstock {
namespace {

std::optional<Failure> beyond_bytes(EncodedBytes bytes, const ImageLimits& limits) {
  if (bytes.size() <= limits.bytes_max) return {};
  return Failure{.message = fmt::format("the file has {} bytes, more than the limit of {}",
                                        bytes.size(), limits.bytes_max),
                 .remedy = "raise bytes_max if such files are meant to be read"};
}

std::optional<Failure> beyond_pixels(const ImageInfo& info, const ImageLimits& limits) {
  const auto longer = static_cast<std::uint64_t>(std::max(info.width, info.height));
  if (longer > limits.side_max)
    return Failure{.message = fmt::format("the {} claims {} x {} pixels, more than the limit of {} "
                                          "for one side",
                                          image_format_name(info.format), info.width, info.height,
                                          limits.side_max),
                   .remedy = "raise side_max if such images are meant to be read"};
  // Sizes come from fields of at most 32 bits, or were checked elsewhere.
  const auto pixels =
      static_cast<std::uint64_t>(info.width) * static_cast<std::uint64_t>(info.height);
  if (pixels <= limits.pixels_max) return {};
  return Failure{.message = fmt::format("the {} claims {} x {} pixels, more than the limit of {}",
                                        image_format_name(info.format), info.width, info.height,
                                        limits.pixels_max),
                 .remedy = "raise pixels_max if such images are meant to be read"};
}

Result<ImageInfo> probe_as(ImageFormat format, EncodedBytes bytes) {
  switch (format) {
    case ImageFormat::jpeg:
      return probe_jpeg(bytes);
    case ImageFormat::png:
      return probe_png(bytes);
    case ImageFormat::webp:
      return probe_webp(bytes);
    case ImageFormat::bmp:
      return probe_bmp(bytes);
    case ImageFormat::pnm:
      return probe_pnm(bytes);
    case ImageFormat::npy:
      break;
  }
  return probe_npy(bytes);
}

Result<Pixels> decode_as(EncodedBytes bytes, const ImageInfo& stored, const StoredRequest& request,
                         Scratch& scratch) {
  switch (stored.format) {
    case ImageFormat::jpeg:
      return decode_jpeg(bytes, stored, request, scratch);
    case ImageFormat::png:
      return decode_png(bytes, stored, request, scratch);
    case ImageFormat::webp:
      return decode_webp(bytes, stored, request, scratch);
    case ImageFormat::bmp:
      return decode_bmp(bytes, stored, request, scratch);
    case ImageFormat::pnm:
      return decode_pnm(bytes, stored, request, scratch);
    case ImageFormat::npy:
      break;
  }
  return decode_npy(bytes, stored, request, scratch);
}

bool inside(const Region& region, const ImageInfo& info) {
  return region.x >= 0 && region.y >= 0 && region.width > 0 && region.height > 0 &&
         region.width <= info.width && region.x <= info.width - region.width &&
         region.height <= info.height && region.y <= info.height - region.height;
}

Failure unknown_format(EncodedBytes bytes) {
  if (bytes.empty()) return Failure{.message = "the file is empty"};
  std::string start;
  for (const std::byte each : bytes.first(std::min<std::size_t>(bytes.size(), 8)))
    start += fmt::format(" {:02x}", std::to_integer<unsigned>(each));
  return Failure{.message = fmt::format("no supported image format begins with{}", start),
                 .remedy = "convert it to JPEG, PNG, WebP, BMP, PPM/PGM/PBM or npy"};
}

}  // namespace

std::string_view image_format_name(ImageFormat format) {
  switch (format) {
    case ImageFormat::jpeg:
      return "JPEG";
    case ImageFormat::png:
      return "PNG";
    case ImageFormat::webp:
      return "WebP";
    case ImageFormat::bmp:
      return "BMP";
    case ImageFormat::pnm:
      return "PPM/PGM";
    case ImageFormat::npy:
      break;
  }
  return "npy";
}

std::optional<ImageFormat> image_format_of(std::span<const std::byte> bytes) {
  if (has_text(bytes, 0, "\xff\xd8\xff")) return ImageFormat::jpeg;
  if (has_text(bytes, 0, "\x89PNG\r\n\x1a\n")) return ImageFormat::png;
  if (has_text(bytes, 0, "RIFF") && has_text(bytes, 8, "WEBP")) return ImageFormat::webp;
  if (has_text(bytes, 0, "BM")) return ImageFormat::bmp;
  if (has_text(bytes, 0, "\x93NUMPY")) return ImageFormat::npy;
  if (bytes.size() >= 3 && has_text(bytes, 0, "P")) {
    const unsigned kind = byte_at(bytes, 1);
    const unsigned next = byte_at(bytes, 2);
    const bool space = next == ' ' || (next >= '\t' && next <= '\r') || next == '#';
    if (space && kind >= '1' && kind <= '6') return ImageFormat::pnm;
  }
  return {};
}

Result<ImageInfo> probe_image(std::span<const std::byte> bytes, const ImageLimits& limits) {
  if (auto failure = beyond_bytes(bytes, limits)) return *std::move(failure);
  const std::optional<ImageFormat> format = image_format_of(bytes);
  if (!format) return unknown_format(bytes);
  Result<ImageInfo> info = probe_as(*format, bytes);
  if (!info) return info;
  if (auto failure = beyond_pixels(*info, limits)) return *std::move(failure);
  if (orientation_of(info->orientation).transposed) std::swap(info->width, info->height);
  return info;
}

Result<Pixels> decode_image(std::span<const std::byte> bytes, const ImageInfo& info,
                            const DecodeRequest& request, Scratch& scratch) {
  if (auto failure = beyond_bytes(bytes, request.limits)) return *std::move(failure);
  if (auto failure = beyond_pixels(info, request.limits)) return *std::move(failure);
  const Region seen =
      request.region.value_or(Region{.x = 0, .y = 0, .width = info.width, .height = info.height});
  if (!inside(seen, info)) {
    return Failure{.message = fmt::format(
                       "a region of {} x {} at x {}, y {} is not inside an image of {} x {}",
                       seen.width, seen.height, seen.x, seen.y, info.width, info.height)};
  }
  const int channels = request.channels == 0 ? info.channels : request.channels;
  if (channels < 1 || channels > 4) {
    return Failure{.message = fmt::format("an image cannot have {} channels", channels),
                   .remedy = "ask for 1, 3 or 4, or 0 for as stored"};
  }
  const Orientation turn = orientation_of(info.orientation);
  ImageInfo stored = info;
  StoredRequest wanted{.part = {},
                       .channels = channels,
                       .fast_width = request.fast_width,
                       .fast_height = request.fast_height,
                       .keep_16_bit = request.keep_16_bit,
                       .deadline = std::chrono::steady_clock::now() + request.limits.time_max};
  if (turn.transposed) {
    std::swap(stored.width, stored.height);
    std::swap(wanted.fast_width, wanted.fast_height);
  }
  wanted.part = stored_region(seen, turn, stored.width, stored.height);
  Result<Pixels> decoded = decode_as(bytes, stored, wanted, scratch);
  if (!decoded) return decoded;
  if (!can_convert_channels(decoded->dtype, decoded->channels, channels)) {
    return Failure{.message = fmt::format("cannot convert to {} channels of {} from {}", channels,
                                          dtype_name(decoded->dtype), decoded->channels),
                   .remedy = "ask for channels 0: as stored"};
  }
  return turned(with_channels(*decoded, channels, scratch), turn, scratch);
}

}  // namespace penstock
