#pragma once
// The bytes of a row file: its start, and then a frame for each row.
//
//   start   "PSROWS1\n", u64 salt, u64 data, u32 CRC-32C of these, u32 0
//   frame   u32 magic, u32 CRC-32C of the salt and the rest of this header, u32 payload bytes,
//           u32 CRC-32C of the payload, u64 row number, u64 sample id, u64 occurrence,
//           the payload, zeros up to a multiple of 8
//   payload for each field in the order of the spec: the bytes of a dense row; for any other,
//           at a multiple of 8: u64 rank, u64 bytes, i64 sizes, the bytes. While the spec is
//           unknown: u64 bytes of the structure, the structure, u64 number of tensors, and for
//           each, at a multiple of 8, u64 dtype and then as above.
//
// Numbers are little-endian. `salt` is random: bytes of another row file within a payload are never
// taken for a frame. `data` identifies what the rows are computed from.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/block.h"

namespace penstock {

static_assert(std::endian::native == std::endian::little);

struct RowFileStart {
  std::uint64_t salt = 0;
  std::uint64_t data = 0;
};
inline constexpr std::size_t kRowFileStartBytes = 32;
std::string row_file_start(const RowFileStart& start);
/// Nothing if this is no row file.
std::optional<RowFileStart> parse_row_file_start(std::string_view bytes);

struct RowHeader {
  std::uint32_t payload_bytes = 0;
  std::uint32_t payload_crc = 0;
  std::uint64_t number = 0;
  std::uint64_t sample_id = 0;
  std::uint64_t occurrence = 0;
};
inline constexpr std::size_t kRowHeaderBytes = 40;
using RowHeaderBytes = std::array<char, kRowHeaderBytes>;
RowHeaderBytes row_header(const RowHeader& header, std::uint64_t salt);
/// Nothing if no frame of a file with this salt begins here.
std::optional<RowHeader> parse_row_header(std::string_view bytes, std::uint64_t salt);

/// Zeros between `bytes` and a multiple of 8.
inline std::uint64_t padding_after(std::uint64_t bytes) {
  return (8 - bytes % 8) % 8;
}
inline std::uint64_t frame_bytes(std::uint64_t payload_bytes) {
  return kRowHeaderBytes + payload_bytes + padding_after(payload_bytes);
}
/// Larger rows are not stored.
inline constexpr std::uint64_t kRowBytesMax = std::uint64_t{1} << 30;

/// Frames to be written: parts of memory in their order. Refers to the block of the rows.
struct RowFrames {
  std::vector<std::string_view> parts;
  std::deque<std::string> own;  // the memory of headers
  std::deque<RowHeaderBytes> headers;
  std::uint64_t bytes = 0;
};

/// Rows of one spec to payloads and back. Const and thread-safe.
class RowCodec {
 public:
  explicit RowCodec(ElementSpec spec);
  [[nodiscard]] const ElementSpec& spec() const { return spec_; }
  /// The bytes of every payload, if all fields are dense.
  [[nodiscard]] std::optional<std::uint64_t> fixed_bytes() const { return fixed_bytes_; }

  /// Adds the frame of row `row`. Returns the bytes of its payload, or nothing, and adds nothing,
  /// if it is larger than kRowBytesMax.
  std::optional<std::uint32_t> encode(const BlockView& block, std::size_t row, std::uint64_t number,
                                      std::uint64_t salt, RowFrames& frames) const;
  /// Writes the payload, which begins at a multiple of 8, to row `row` of a block of this spec.
  /// Tensors refer to it, and keep `owner`. Returns false if the payload is of another spec.
  [[nodiscard]] bool decode(std::string_view payload, const std::shared_ptr<const void>& owner,
                            const BlockView& out, std::size_t row) const;

 private:
  ElementSpec spec_;
  std::optional<std::uint64_t> fixed_bytes_;
};

}  // namespace penstock
