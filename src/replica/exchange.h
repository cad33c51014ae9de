#pragma once
// Exchanges the values of the replicas of all processes.

#include <deque>
#include <string>
#include <vector>

#include "penstock/coordinator.h"
#include "penstock/strategy.h"

namespace penstock {

/// The parts of every replica in replica order, with the shares they refer to.
struct AllParts {
  std::vector<detail::Part> parts;
  std::deque<detail::ShareCount> shares;
};

/// Collective. `word` names the call in errors.
AllParts exchange_parts(Coordinator& coordinator, const std::string& word,
                        std::span<const detail::Part> parts);

}  // namespace penstock
