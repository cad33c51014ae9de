#pragma once
// Numbers and texts in files of ours: numbers as 8 bytes, little end first, texts as a number and
// bytes.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

static_assert(std::endian::native == std::endian::little);

inline void put(std::string& bytes, std::uint64_t number) {
  char raw[sizeof number];
  std::memcpy(raw, &number, sizeof number);
  bytes.append(raw, sizeof number);
}
inline void put(std::string& bytes, std::string_view text) {
  put(bytes, text.size());
  bytes += text;
}
inline void put(std::string& bytes, const std::vector<std::string>& texts) {
  put(bytes, texts.size());
  for (const std::string& text : texts) put(bytes, std::string_view(text));
}
/// 7 bits per byte: small numbers take one byte.
inline void put_short(std::string& bytes, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  bytes += static_cast<char>(number);
}

/// Takes numbers and texts from the front. If the input is too short, or a number exceeds its
/// limit, all further results are empty.
class BytesTaker {
 public:
  static constexpr std::uint64_t kTextMax = 1 << 16;
  explicit BytesTaker(std::string_view bytes) : left_(bytes) {}

  std::uint64_t number(std::uint64_t max = UINT64_MAX) {
    std::uint64_t number = 0;
    if (left_.size() < sizeof number) return fail();
    std::memcpy(&number, left_.data(), sizeof number);
    left_.remove_prefix(sizeof number);
    return number <= max ? number : fail();
  }
  std::uint64_t short_number() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(left_.front());
      left_.remove_prefix(1);
      number |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return number;
    }
    return fail();
  }
  std::string_view text(std::uint64_t bytes) {
    if (bytes > left_.size()) {
      fail();
      return {};
    }
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> taken;
    const std::uint64_t count = number(left_.size() / sizeof(std::uint64_t));
    for (std::uint64_t i = 0; i < count && good_; ++i) taken.emplace_back(text(number(kTextMax)));
    return taken;
  }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] std::size_t left() const { return left_.size(); }

 private:
  std::uint64_t fail() {
    good_ = false;
    left_ = {};
    return 0;
  }
  std::string_view left_;
  bool good_ = true;
};

}  // namespace penstock
