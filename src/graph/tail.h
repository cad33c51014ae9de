#pragma once
// The tail policies by name, and what they mean for grouping.

#include <optional>
#include <string_view>

#include "order/steps.h"
#include "penstock/dataset.h"

namespace penstock {

/// "short", "drop", "even", "pad", "wrap" or "strict".
std::string_view tail_name(Tail tail);
std::optional<Tail> tail_named(std::string_view name);
/// The policy in a text from another process; ConfigError where it is not known.
Tail tail_parsed(std::string_view name);
TailRule rule_of(Tail tail);
Tail tail_of(TailRule rule);
/// True when other samples come, or in other steps, than with short batches.
bool changes_steps(Tail tail);

}  // namespace penstock
