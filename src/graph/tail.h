#pragma once
// The tail policies by name.

#include <optional>
#include <string_view>

#include "penstock/tail.h"

namespace penstock {

/// "short", "drop", "even", "pad", "wrap" or "strict"; throws ConfigError for any other value.
std::string_view tail_name(Tail tail);
std::optional<Tail> tail_named(std::string_view name);
/// Parses a name sent by another process; throws ConfigError if it is unknown.
Tail tail_parsed(std::string_view name);
/// True if the policy delivers other samples, or other steps, than short batches would.
bool changes_steps(Tail tail);

}  // namespace penstock
