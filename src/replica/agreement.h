#pragma once
// The checks that the processes of a job make before their first step: a rank with a different plan
// would silently train on other data, or block forever.

#include "penstock/coordinator.h"
#include "penstock/plan.h"

namespace penstock {

/// Throws ConfigError on every rank if two ranks have the same id, or one is out of range.
void compare_ranks(Coordinator& coordinator);

enum class Comparing : std::uint8_t {
  all,       // one dataset, cut for all ranks
  geometry,  // each rank has its own data, of the same length
};
/// Throws ConfigError on every rank, naming the field in which the plans differ.
void compare_plans(Coordinator& coordinator, const Plan& plan, Comparing comparing);

}  // namespace penstock
