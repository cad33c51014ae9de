#include "replica/agreement.h"

#include <fmt/format.h>

#include "base/mix.h"

namespace penstock {
namespace {

/// 32 bits, so that the sum of a million of them is exact in a double.
double mark_of(std::uint32_t rank) {
  return static_cast<double>(mix(rank + 1) >> 32);
}

}  // namespace

void compare_ranks(Coordinator& coordinator) {
  const std::uint32_t rank = coordinator.rank();
  const std::uint32_t world = coordinator.world();
  if (world == 1 && rank == 0) return;
  coordinator.compare("number of processes", std::to_string(world));
  double expected = 0;
  for (std::uint32_t one = 0; one < world; ++one) expected += mark_of(one);
  if (coordinator.sum(mark_of(rank)) == expected) return;
  // All ranks see the same sum, so all arrive here and check rank by rank.
  for (std::uint32_t one = 0; one < world; ++one) {
    const double holders = coordinator.sum(rank == one ? 1 : 0);
    if (holders != 1)
      throw ConfigError(fmt::format("world: {} processes have rank {} of {}; this one has rank {}",
                                    holders, one, world, rank),
                        {}, "give every process its own rank, from 0 on");
  }
}

void compare_plans(Coordinator& coordinator, const Plan& plan, Comparing comparing) {
  if (coordinator.world() == 1) return;
  const auto samples = plan.samples();
  coordinator.compare("steps of a pass", plan.steps().text());
  coordinator.compare("samples of a pass", samples ? samples->text() : "unknown");
  coordinator.compare("global batch", std::to_string(plan.batch_samples()));
  coordinator.compare("shares of a step", std::to_string(plan.shares().total));
  if (comparing == Comparing::geometry) return;
  const Digests digests = plan.digests();
  coordinator.compare("order of samples (seed, sources, nodes)", digests.order);
  coordinator.compare("values (functions, ops, library)", digests.values);
}

}  // namespace penstock
