#include "codec/ogg_pages.h"

#include <fmt/format.h>

#include <array>

#include "codec/formats.h"

namespace penstock {
namespace {

// https://www.xiph.org/ogg/doc/framing.html
constexpr std::size_t kHeader = 27;
constexpr std::size_t kFlags = 5;
constexpr std::size_t kPosition = 6;
constexpr std::size_t kStream = 14;
constexpr std::size_t kChecksum = 22;
constexpr unsigned kLast = 4;  // a flag

constexpr std::array<std::uint32_t, 256> kTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i << 24U;
    for (int bit = 0; bit < 8; ++bit)
      value = (value & 0x80000000U) != 0 ? value << 1U ^ 0x04c11db7U : value << 1U;
    table[i] = value;
  }
  return table;
}();

/// The bytes of the page at the front; 0 if it is not complete.
std::size_t page_bytes(EncodedBytes bytes) {
  if (bytes.size() < kHeader) return 0;
  const std::size_t segments = byte_at(bytes, kHeader - 1);
  std::size_t size = kHeader + segments;
  if (bytes.size() < size) return 0;
  for (std::size_t i = 0; i < segments; ++i) size += byte_at(bytes, kHeader + i);
  return bytes.size() < size ? 0 : size;
}

}  // namespace

std::uint32_t ogg_checksum(std::span<const std::byte> page) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < page.size(); ++i) {
    const bool own = i >= kChecksum && i < kChecksum + 4;
    sum = sum << 8U ^ kTable[sum >> 24U ^ (own ? 0U : byte_at(page, i))];
  }
  return sum;
}

Result<OggPages> check_ogg_pages(std::span<const std::byte> bytes) {
  OggPages found;
  const std::uint32_t stream = bytes.size() < kHeader ? 0 : little32(bytes, kStream);
  std::size_t at = 0;
  while (at < bytes.size()) {
    const EncodedBytes left = bytes.subspan(at);
    constexpr std::string_view kName("OggS\0", 5);
    if (!has_text(left, 0, kName.substr(0, std::min(left.size(), kName.size()))))
      return Failure{.message = fmt::format("the Ogg is damaged: byte {} is not within a page", at),
                     .remedy = "fetch the file again, or write it again"};
    const std::size_t size = page_bytes(left);
    if (size == 0) {
      found.ended = false;
      return found;
    }
    if (ogg_checksum(left.first(size)) != little32(left, kChecksum))
      return Failure{
          .message = fmt::format("the Ogg is damaged: the page at byte {} does not match its "
                                 "checksum",
                                 at),
          .remedy = "fetch the file again, or write it again"};
    if (little32(left, kStream) != stream || found.ended)
      return Failure{.message = "the Ogg holds more than one stream",
                     .remedy = "convert the file to FLAC, or to one stream"};
    const std::uint64_t position =
        little32(left, kPosition) | std::uint64_t{little32(left, kPosition + 4)} << 32U;
    if (position != UINT64_MAX) found.position = static_cast<std::int64_t>(position);
    found.ended = (byte_at(left, kFlags) & kLast) != 0;
    at += size;
  }
  return found;
}

}  // namespace penstock
