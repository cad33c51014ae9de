// Any bytes are an image or a Failure that says why, whole or in part; and a part is that part of
// the whole, in every format.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "codec/codec.h"
#include "sample/scratch.h"

namespace {

using penstock::DecodeRequest;
using penstock::Pixels;
using penstock::Region;

constexpr penstock::ImageLimits kLimits = {.pixels_max = 1U << 18U,
                                           .time_max = std::chrono::milliseconds(2000)};

/// Reads every byte of the pixels, and the slack behind them.
void read_all(const Pixels& pixels) {
  const std::size_t row = static_cast<std::size_t>(pixels.width) *
                          static_cast<std::size_t>(pixels.channels) * dtype_size(pixels.dtype);
  unsigned sum = 0;
  for (std::int64_t y = 0; y < pixels.height; ++y) {
    const std::byte* const from = pixels.data + static_cast<std::size_t>(y) * pixels.stride;
    const std::size_t count = y + 1 == pixels.height ? row + Pixels::kSlack : row;
    for (std::size_t i = 0; i < count; ++i) sum += std::to_integer<unsigned>(from[i]);
  }
  [[maybe_unused]] static volatile unsigned sink;
  sink = sum;
}

bool is_part(const Pixels& part, const Pixels& whole, const Region& region) {
  if (part.width != region.width || part.height != region.height ||
      part.channels != whole.channels || part.dtype != whole.dtype)
    return false;
  const std::size_t pixel = static_cast<std::size_t>(whole.channels) * dtype_size(whole.dtype);
  for (std::int64_t y = 0; y < part.height; ++y) {
    const std::byte* const in_part = part.data + static_cast<std::size_t>(y) * part.stride;
    const std::byte* const in_whole = whole.data +
                                      static_cast<std::size_t>(region.y + y) * whole.stride +
                                      static_cast<std::size_t>(region.x) * pixel;
    if (std::memcmp(in_part, in_whole, static_cast<std::size_t>(part.width) * pixel) != 0)
      return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto info = penstock::probe_image(bytes, kLimits);
  if (!info) {
    if (info.failure().message.empty()) std::abort();
    return 0;
  }
  if ((*info).width < 1 || (*info).height < 1 || (*info).channels < 1 || (*info).channels > 4)
    std::abort();
  const Region middle{.x = (*info).width / 3,
                      .y = (*info).height / 3,
                      .width = ((*info).width + 2) / 3,
                      .height = ((*info).height + 2) / 3};
  const DecodeRequest whole{.channels = 0, .keep_16_bit = true, .limits = kLimits};
  const DecodeRequest part{.channels = 0, .region = middle, .keep_16_bit = true, .limits = kLimits};
  penstock::Scratch whole_scratch;
  penstock::Scratch part_scratch;
  const auto all = penstock::decode_image(bytes, *info, whole, whole_scratch);
  const auto some = penstock::decode_image(bytes, *info, part, part_scratch);
  if (all && (!some || !is_part(*some, *all, middle))) std::abort();
  const DecodeRequest requests[] = {
      whole,
      {.channels = 3, .region = middle, .limits = kLimits},
      {.channels = 1, .region = middle, .fast_width = 4, .fast_height = 4, .limits = kLimits},
  };
  for (const DecodeRequest& request : requests) {
    penstock::Scratch scratch;
    const auto decoded = penstock::decode_image(bytes, *info, request, scratch);
    if (decoded) {
      read_all(*decoded);
    } else if (decoded.failure().message.empty()) {
      std::abort();
    }
  }
  return 0;
}
