#pragma once
// A pass walked through without data: does every sample come as often as it should?

#include <cstdint>

#include "penstock/plan.h"

namespace penstock {

/// Asks for the ids of all rows of all shares of all steps, in the way in which a loader computes
/// them. Throws ConfigError for passes that are endless, pulled from a stream, or too long.
PassCheck check_pass(const PlanData& plan, std::uint64_t pass);

}  // namespace penstock
