#pragma once
// What the graph asks about tail policies.

#include <string_view>

#include "penstock/tail.h"

namespace penstock {

/// The policy in a text from another process; ConfigError where it is not known.
Tail tail_parsed(std::string_view name);
/// True when other samples come, or in other steps, than with short batches.
bool changes_steps(Tail tail);

}  // namespace penstock
