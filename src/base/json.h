#pragma once
// JSON for states, plans and reports. The only file that names the library behind it.

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_fwd.h"

namespace penstock {

/// Parses `text`; nullopt if it is not JSON or nests deeper than 64.
std::optional<Json> parse_json(std::string_view text);

/// A whole number that fits `T`. Throws Json::type_error for anything else: the library itself
/// would silently convert 1e20.
template <std::integral T>
T whole_number(const Json& json) {
  if (json.is_number_unsigned()) {
    const auto value = json.get<std::uint64_t>();
    if (std::in_range<T>(value)) return static_cast<T>(value);
  } else if (json.is_number_integer()) {
    const auto value = json.get<std::int64_t>();
    if (std::in_range<T>(value)) return static_cast<T>(value);
  }
  throw Json::type_error::create(302, "expected a whole number, not " + json.dump(), &json);
}
template <std::integral T>
std::vector<T> whole_numbers(const Json& json) {
  if (!json.is_array())
    throw Json::type_error::create(302, "expected whole numbers, not " + json.dump(), &json);
  std::vector<T> values;
  for (const Json& one : json) values.push_back(whole_number<T>(one));
  return values;
}

}  // namespace penstock
