#pragma once
// Plans for loops that cannot leave out a step: every share must have a sample in each.

#include <cstdint>
#include <optional>
#include <string>

#include "plan/plan_data.h"

namespace penstock {

/// Throws ConfigError where a share has, or of a stream may have, no sample in some step; names
/// what would help for these numbers. A Sequence's batches show their sizes when they are there.
void refuse_empty_shares(const PlanData& plan);

}  // namespace penstock
