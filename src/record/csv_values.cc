#include "record/csv_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstring>
#include <utility>

#include "sample/with_type.h"

namespace penstock {
namespace {

bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

/// A plus before the digits, which std::from_chars does not know.
std::string_view without_plus(std::string_view text) {
  const bool plus = text.size() > 1 && text[0] == '+' && text[1] != '-' && text[1] != '+';
  return plus ? text.substr(1) : text;
}

/// True if a decimal number that does not fit is too small rather than too large.
bool is_tiny(std::string_view number) {
  if (number.starts_with('-')) number.remove_prefix(1);
  const std::size_t mark = number.find_first_of("eE");
  std::int64_t exponent = 0;
  if (mark != std::string_view::npos) {
    std::string_view digits = without_plus(number.substr(mark + 1));
    const char* const begin = digits.data();
    const auto parsed = std::from_chars(begin, begin + digits.size(), exponent);
    constexpr std::int64_t kHuge = std::int64_t{1} << 60;
    if (parsed.ec != std::errc()) exponent = digits.starts_with('-') ? -kHuge : kHuge;
  }
  // Where the first digit that counts is, before the exponent.
  const std::string_view digits = number.substr(0, mark);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos) return true;
  return exponent < static_cast<std::int64_t>(first) - static_cast<std::int64_t>(point);
}

TextValue parse_double(std::string_view text, double& value) {
  text = without_plus(text);
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto parsed = std::from_chars(begin, end, value);
  if (parsed.ec == std::errc::invalid_argument || parsed.ptr != end || text.ends_with(')'))
    return TextValue::no_value;
  if (parsed.ec != std::errc()) {
    if (!is_tiny(text)) return TextValue::out_of_range;
    value = text.starts_with('-') ? -0.0 : 0.0;
  }
  return TextValue::good;
}

template <typename T>
TextValue parse_whole(std::string_view text, T& value) {
  text = without_plus(text);
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  std::int64_t number = 0;
  auto parsed = std::from_chars(begin, end, number);
  if (parsed.ec == std::errc::invalid_argument || parsed.ptr != end) return TextValue::no_value;
  if (parsed.ec == std::errc() && std::in_range<T>(number)) {
    value = static_cast<T>(number);
    return TextValue::good;
  }
  if (std::same_as<T, std::uint64_t> && !text.starts_with('-')) {
    std::uint64_t large = 0;
    parsed = std::from_chars(begin, end, large);
    value = static_cast<T>(large);
    if (parsed.ec == std::errc()) return TextValue::good;
  }
  return TextValue::out_of_range;
}

std::optional<bool> boolean_word(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

template <typename T>
TextValue parse_as(std::string_view text, T& value) {
  if constexpr (std::same_as<T, bool>) {
    const auto word = boolean_word(text);
    value = word.value_or(text == "1");
    return word || text == "1" || text == "0" ? TextValue::good : TextValue::no_value;
  } else if constexpr (std::integral<T>) {
    return parse_whole(text, value);
  } else {
    double number = 0;
    const TextValue result = parse_double(text, number);
    if constexpr (std::floating_point<T>) {
      value = static_cast<T>(number);
    } else {
      value = T(static_cast<float>(number));
    }
    const bool finite = std::isfinite(static_cast<float>(value));
    const bool lost = !std::same_as<T, double> && std::isfinite(number) && !finite;
    return result == TextValue::good && lost ? TextValue::out_of_range : result;
  }
}

}  // namespace

TextValue parse_text_value(std::string_view text, Dtype dtype, std::byte* to) {
  return with_type(dtype, [&]<typename T>(T value) {
    if constexpr (std::same_as<T, NoType>) {
      return TextValue::no_value;
    } else {
      const TextValue result = parse_as(text, value);
      if (result == TextValue::good) std::memcpy(to, &value, sizeof value);
      return result;
    }
  });
}

std::string_view without_spaces(std::string_view text) {
  const auto space = [](char byte) { return byte == ' ' || byte == '\t'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

void TypeGuess::add(std::string_view text) {
  any_ = true;
  booleans_ = booleans_ && boolean_word(text).has_value();
  if (!numbers_) return;
  std::string_view digits = without_plus(text);
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  if (digits.empty() || !std::ranges::all_of(digits, is_digit)) {
    whole_ = false;
    double value = 0;
    numbers_ = parse_double(text, value) != TextValue::no_value;
    return;
  }
  std::int64_t number = 0;
  if (parse_whole(text, number) == TextValue::good) {
    negative_ = negative_ || number < 0;
    return;
  }
  large_ = true;
  std::uint64_t large = 0;
  if (parse_whole(text, large) != TextValue::good) whole_ = false;
}

std::optional<Dtype> TypeGuess::dtype(Dtype floats) const {
  if (!any_) return std::nullopt;
  if (booleans_) return Dtype::boolean;
  if (!numbers_) return Dtype::string;
  if (!whole_ || (large_ && negative_)) return floats;
  return large_ ? Dtype::u64 : Dtype::i64;
}

}  // namespace penstock
