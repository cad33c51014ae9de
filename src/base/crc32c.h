#pragma once
// CRC-32C (Castagnoli), as in iSCSI, ext4 and TFRecord files.

#include <cstdint>
#include <string_view>

namespace penstock {

/// The checksum of `bytes`, continuing from `before`, the checksum of the bytes before them. Uses
/// the instructions of the CPU for it, if there are any.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

/// The same on any CPU, ten times slower.
std::uint32_t crc32c_plain(std::string_view bytes, std::uint32_t before = 0);

}  // namespace penstock
