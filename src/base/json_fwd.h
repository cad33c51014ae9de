#pragma once
// Forward declaration of Json, for headers: base/json.h is slow to compile.

#include <nlohmann/json_fwd.hpp>

namespace penstock {

/// Objects keep their keys sorted, so that equal values have equal text.
using Json = nlohmann::json;

}  // namespace penstock
