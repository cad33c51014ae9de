#pragma once
// What the graph asks about tail policies.

#include <string_view>

#include "penstock/tail.h"

namespace penstock {

/// Parses a name sent by another process; throws ConfigError if it is unknown.
Tail tail_parsed(std::string_view name);
/// True if the policy delivers other samples, or other steps, than short batches would.
bool changes_steps(Tail tail);

}  // namespace penstock
