#pragma once
// JSON for states, plans and reports. The only file that names the library behind it.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace penstock {

/// Parses `text`, or nothing when it is not JSON or nests deeper than 64.
std::optional<Json> parse_json(std::string_view text);

}  // namespace penstock
