#pragma once
// Writers of gzip, zlib and zstd without compression, so that tests need no library for it: stored
// blocks, as RFC 1950 to 1952 and RFC 8878 describe them.

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::for_tests {

inline std::string little_bytes(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 255U);
  return text;
}

inline std::string stored_deflate(std::string_view data) {
  std::string out;
  do {
    const std::string_view block = data.substr(0, 0xffff);
    data.remove_prefix(block.size());
    out += data.empty() ? '\1' : '\0';
    out += little_bytes(block.size(), 2) + little_bytes(~block.size(), 2);
    out += block;
  } while (!data.empty());
  return out;
}

inline std::string stored_gzip(std::string_view data) {
  std::uint32_t sum = ~0U;
  for (const char byte : data) {
    sum ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) sum = (sum & 1U) != 0 ? sum >> 1U ^ 0xedb88320U : sum >> 1U;
  }
  return std::string("\x1f\x8b\x08\0\0\0\0\0\0\3", 10) + stored_deflate(data) +
         little_bytes(~sum, 4) + little_bytes(data.size(), 4);
}

inline std::string stored_zlib(std::string_view data) {
  std::uint32_t low = 1;
  std::uint32_t high = 0;
  for (const char byte : data) {
    low = (low + static_cast<unsigned char>(byte)) % 65521;
    high = (high + low) % 65521;
  }
  std::string out = "\x78\x01" + stored_deflate(data);
  for (const std::uint32_t half : {high, low}) {
    out += static_cast<char>(half >> 8U);
    out += static_cast<char>(half & 255U);
  }
  return out;
}

/// One frame with a window of 128 KiB.
inline std::string stored_zstd(std::string_view data) {
  constexpr std::size_t kBlock = std::size_t{1} << 17U;
  std::string out("\x28\xb5\x2f\xfd\0\x38", 6);
  do {
    const std::string_view block = data.substr(0, kBlock);
    data.remove_prefix(block.size());
    out += little_bytes(block.size() << 3U | (data.empty() ? 1U : 0U), 3);
    out += block;
  } while (!data.empty());
  return out;
}

}  // namespace penstock::for_tests
