#include <cstdint>

#include "codec/formats.h"

namespace penstock {

int exif_orientation(EncodedBytes exif) {
  constexpr std::size_t kHeader = 8;
  constexpr std::size_t kEntry = 12;
  constexpr std::uint32_t kOrientation = 0x0112;
  constexpr std::uint32_t kShort = 3;
  const bool little = has_text(exif, 0, "II");
  if (exif.size() < kHeader || (!little && !has_text(exif, 0, "MM"))) return 1;
  const auto number16 = [&](std::size_t at) {
    return little ? little16(exif, at) : big16(exif, at);
  };
  const auto number32 = [&](std::size_t at) {
    return little ? little32(exif, at) : big32(exif, at);
  };
  const std::size_t directory = number32(4);
  if (number16(2) != 42 || directory > exif.size() - 2) return 1;
  const std::size_t entries = number16(directory);
  for (std::size_t entry = 0; entry < entries; ++entry) {
    const std::size_t at = directory + 2 + entry * kEntry;
    if (at + kEntry > exif.size()) return 1;
    if (number16(at) != kOrientation) continue;
    const std::uint32_t value = number16(at + 8);
    return number16(at + 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace penstock
