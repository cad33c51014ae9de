#pragma once
// From text to numbers and booleans, and which type a column of texts has.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "penstock/dtype.h"

namespace penstock {

enum class TextValue : std::uint8_t { good, no_value, out_of_range };

/// Writes `text`, which has no spaces around it, as one number or boolean. Whole numbers are digits
/// after an optional sign; other numbers may have a point and an exponent, or be "nan", "inf" or
/// "infinity". What is too small for its type is 0. Booleans are "true" and "false", "True" and
/// "False", "TRUE" and "FALSE", 1 and 0.
TextValue parse_text_value(std::string_view text, Dtype dtype, std::byte* to);

/// `text` without spaces and tabs at its ends.
std::string_view without_spaces(std::string_view text);

/// The type that all of some texts have.
class TypeGuess {
 public:
  void add(std::string_view text);
  /// Whole numbers are no longer enough: nulls become another number.
  void add_fraction() { whole_ = false; }
  /// Nothing if there were no texts.
  [[nodiscard]] std::optional<Dtype> dtype(Dtype floats) const;

 private:
  bool any_ = false;
  bool booleans_ = true;
  bool numbers_ = true;
  bool whole_ = true;
  bool negative_ = false;
  bool large_ = false;  // beyond i64
};

/// Reads digits, with an optional minus, as long as they surely fit. Returns the end of the number;
/// null for anything that needs `parse_text_value`.
inline const char* read_short_integer(const char* at, const char* end, std::int64_t& value) {
  const bool negative = at < end && *at == '-';
  if (negative) ++at;
  constexpr std::ptrdiff_t kDigitsMax = 18;
  const char* const stop = end - at > kDigitsMax ? at + kDigitsMax : end;
  const char* const first = at;
  std::uint64_t sum = 0;
  for (; at < stop; ++at) {
    const unsigned digit = static_cast<unsigned char>(*at) - unsigned{'0'};
    if (digit > 9) break;
    sum = sum * 10 + digit;
  }
  if (at == first) return nullptr;
  value = static_cast<std::int64_t>(sum);
  if (negative) value = -value;
  return at;
}

/// The same for a number with or without a point: exact if its digits are below 2^53, since then
/// one division of two exact numbers rounds once.
inline const char* read_short_decimal(const char* at, const char* end, double& value) {
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
                                       1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};
  const bool negative = at < end && *at == '-';
  if (negative) ++at;
  constexpr std::ptrdiff_t kBytesMax = 19;  // 18 digits and the point
  const char* const stop = end - at > kBytesMax ? at + kBytesMax : end;
  const char* const first = at;
  const char* point = nullptr;
  std::uint64_t sum = 0;
  for (; at < stop; ++at) {
    const unsigned digit = static_cast<unsigned char>(*at) - unsigned{'0'};
    if (digit <= 9) {
      sum = sum * 10 + digit;
    } else if (*at == '.' && point == nullptr) {
      point = at;
    } else {
      break;
    }
  }
  const std::ptrdiff_t digits = at - first - (point != nullptr ? 1 : 0);
  if (digits == 0 || digits > 18 || sum > (std::uint64_t{1} << 53)) return nullptr;
  const double magnitude =
      static_cast<double>(sum) / kPowers[point == nullptr ? 0 : at - point - 1];
  value = negative ? -magnitude : magnitude;
  return at;
}

}  // namespace penstock
