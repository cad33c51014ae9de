#pragma once
// Plans for training loops that cannot skip a step: every share must have a sample in each.

#include <cstdint>
#include <optional>
#include <string>

#include "plan/plan_data.h"

namespace penstock {

/// Throws ConfigError if a share has no sample in some step or, for a stream, might have none. The
/// remedy fits the sizes. Batches of a Sequence are not checked: their sizes are not known yet.
void refuse_empty_shares(const PlanData& plan);

}  // namespace penstock
