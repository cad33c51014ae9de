#pragma once
// The tail policies by name.

#include <optional>
#include <string_view>

#include "penstock/tail.h"

namespace penstock {

/// "short", "drop", "even", "pad", "wrap" or "strict"; ConfigError for a value that is none of
/// them.
std::string_view tail_name(Tail tail);
std::optional<Tail> tail_named(std::string_view name);
/// The policy in a text from another process; ConfigError where it is not known.
Tail tail_parsed(std::string_view name);
/// True when other samples come, or in other steps, than with short batches.
bool changes_steps(Tail tail);

}  // namespace penstock
