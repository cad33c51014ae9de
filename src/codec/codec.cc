#include "codec/codec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  std::vector<std::string_view> names;
  for (const FormatEntry& entry : image_formats()) names.push_back(entry.name);
  return Failure{.message = fmt::format("no supported image format begins with{}", start),
                 .remedy = fmt::format("convert it to one of {}", fmt::join(names, ", "))};
}

}  // namespace

std::string_view image_format_name(ImageFormat format) {
  return format_entry(format).name;
}

std::span<const std::string_view> image_extensions(ImageFormat format) {
  return format_entry(format).extensions;
}

std::vector<std::string> image_extensions() {
  std::vector<std::string> all;
  for (const FormatEntry& entry : image_formats())
    all.insert(all.end(), entry.extensions.begin(), entry.extensions.end());
  return all;
}

std::optional<ImageFormat> image_format_of(std::span<const std::byte> bytes) {
  for (const FormatEntry& entry : image_formats())
    if (entry.begins(bytes)) return entry.format;
  return {};
}

Result<ImageInfo> probe_image(std::span<const std::byte> bytes, const ImageLimits& limits) {
  if (auto failure = beyond_bytes(bytes, limits)) return *std::move(failure);
  const std::optional<ImageFormat> format = image_format_of(bytes);
  if (!format) return unknown_format(bytes);
  Result<ImageInfo> info = format_entry(*format).probe(bytes);
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
  Result<Pixels> decoded = format_entry(stored.format).decode(bytes, stored, wanted, scratch);
  if (!decoded) return decoded;
  if (!can_convert_channels(decoded->dtype, decoded->channels, channels)) {
    return Failure{.message = fmt::format("cannot convert to {} channels of {} from {}", channels,
                                          dtype_name(decoded->dtype), decoded->channels),
                   .remedy = "ask for channels 0: as stored"};
  }
  return turned(with_channels(*decoded, channels, scratch), turn, scratch);
}

}  // namespace penstock
