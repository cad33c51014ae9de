#include "base/utf8.h"

#include <cstdint>
#include <cstring>

namespace penstock {
namespace {

/// Bytes of the character that begins `text`; 0 if it is not well-formed.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  const std::uint8_t second = byte(1);
  const bool longer_than_needed =
      (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second > 0x9F;
  const bool too_large = first == 0xF4 && second > 0x8F;
  return longer_than_needed || surrogate || too_large ? 0 : bytes;
}

}  // namespace

std::size_t utf8_prefix(std::string_view text) {
  const std::size_t size = text.size();
  while (!text.empty()) {
    std::uint64_t eight = 0;
    if (text.size() >= sizeof eight) {
      std::memcpy(&eight, text.data(), sizeof eight);
      if ((eight & 0x8080808080808080U) == 0) {
        text.remove_prefix(sizeof eight);
        continue;
      }
    }
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) break;
    text.remove_prefix(bytes);
  }
  return size - text.size();
}

bool is_utf8(std::string_view text) {
  return utf8_prefix(text) == text.size();
}

}  // namespace penstock
