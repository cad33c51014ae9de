#pragma once
// Walks through a pass without data and checks how often each sample is delivered.

#include <cstdint>

#include "penstock/plan.h"

namespace penstock {

/// Computes the ids of all rows of all shares of all steps, as a loader does. Throws ConfigError
/// for passes that are endless, pulled from a stream, or too long.
PassCheck check_pass(const PlanData& plan, std::uint64_t pass);

}  // namespace penstock
