#pragma once
// What the processes of a job compare before their first step: a rank that plans otherwise trains
// on other data, or waits for ever, and nothing would say so.

#include "base/coordinator.h"
#include "penstock/plan.h"

namespace penstock {

/// Throws ConfigError on every rank when two ranks have one id, or one is out of range.
void compare_ranks(Coordinator& coordinator);

enum class Comparing : std::uint8_t {
  all,       // one dataset, cut for all ranks
  geometry,  // each rank has data of its own, of one length
};
/// Throws ConfigError on every rank naming the field in which the plans differ.
void compare_plans(Coordinator& coordinator, const Plan& plan, Comparing comparing);

}  // namespace penstock
