#include "base/printable.h"

#include <fmt/format.h>

#include <cstddef>

namespace penstock {
namespace {

/// Bytes of the UTF-8 character at the front of `bytes`; 0 if there is none.
std::size_t character_bytes(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  const std::size_t count = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || bytes.size() < count) return 0;
  for (std::size_t i = 1; i < count; ++i)
    if ((at(i) & 0xc0U) != 0x80) return 0;
  // Overlong forms, surrogates, and values beyond Unicode.
  if (lead == 0xe0 && at(1) < 0xa0) return 0;
  if (lead == 0xed && at(1) > 0x9f) return 0;
  if (lead == 0xf0 && at(1) < 0x90) return 0;
  if (lead == 0xf4 && at(1) > 0x8f) return 0;
  return count;
}

}  // namespace

std::string printable(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t count = character_bytes(bytes);
    const auto first = static_cast<unsigned char>(bytes[0]);
    if (first == '\\') {
      text += "\\\\";
    } else if (count == 0 || first < 0x20 || first == 0x7f) {
      text += fmt::format("\\x{:02x}", first);
    } else {
      text += bytes.substr(0, count);
    }
    bytes.remove_prefix(count == 0 ? 1 : count);
  }
  return text;
}

}  // namespace penstock
