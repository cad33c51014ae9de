#pragma once
// The wire format of protocol buffers: a message is a sequence of fields, each a number and a
// value.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace penstock {

/// The seven lower bits of each byte, joined.
inline std::uint64_t join_sevens(std::uint64_t word) {
  word = (word & 0x007f007f007f007fULL) | (word & 0x7f007f007f007f00ULL) >> 1;
  word = (word & 0x00003fff00003fffULL) | (word & 0x3fff00003fff0000ULL) >> 2;
  return (word & 0x0fffffffULL) | (word & 0x0fffffff00000000ULL) >> 4;
}

/// Reads a varint, at most ten bytes, and moves `at` after it. False if it is malformed.
inline bool read_varint(const char*& at, const char* end, std::uint64_t& value) {
  if (at < end && static_cast<signed char>(*at) >= 0) [[likely]] {
    value = static_cast<unsigned char>(*at++);
    return true;
  }
  // Without branches that depend on the length, which is hard to predict.
  if (end - at >= 8) [[likely]] {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    const std::uint64_t last = ~word & 0x8080808080808080ULL;  // bytes that end a varint
    if (last != 0) [[likely]] {
      value = join_sevens(word & (last ^ (last - 1)));
      at += (std::countr_zero(last) + 1) / 8;
      return true;
    }
  }
  value = 0;
  for (int shift = 0; shift < 64 && at < end; shift += 7) {
    const std::uint64_t byte = static_cast<unsigned char>(*at++);
    if (shift == 63 && byte > 1) return false;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

struct WireField {
  enum class Type : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  std::uint32_t number = 0;
  Type type = Type::varint;
  std::uint64_t value = 0;  // of a varint
  std::string_view bytes;   // of the other types
};

/// The fields of a message, one by one.
class WireReader {
 public:
  explicit WireReader(std::string_view message)
      : at_(message.data()), end_(message.data() + message.size()) {}
  /// False at the end, and where the message is malformed: then `ok` is false, too. Groups, which
  /// no message of proto3 has, are malformed.
  bool next(WireField& field) {
    if (at_ == end_) return false;
    std::uint64_t tag = 0;
    ok_ = read_varint(at_, end_, tag) && read_value(tag, field);
    return ok_;
  }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  bool read_value(std::uint64_t tag, WireField& field) {
    if (tag > UINT32_MAX || tag < 8) return false;
    field.number = static_cast<std::uint32_t>(tag >> 3);
    field.type = static_cast<WireField::Type>(tag & 7);
    switch (field.type) {
      case WireField::Type::varint:
        return read_varint(at_, end_, field.value);
      case WireField::Type::fixed64:
        return take(sizeof(std::uint64_t), field);
      case WireField::Type::fixed32:
        return take(sizeof(std::uint32_t), field);
      case WireField::Type::bytes: {
        std::uint64_t bytes = 0;
        return read_varint(at_, end_, bytes) && take(bytes, field);
      }
    }
    return false;
  }
  bool take(std::uint64_t bytes, WireField& field) {
    if (bytes > static_cast<std::uint64_t>(end_ - at_)) return false;
    field.bytes = {at_, static_cast<std::size_t>(bytes)};
    at_ += bytes;
    return true;
  }

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace penstock
