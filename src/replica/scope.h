#pragma once
// The current strategy of a thread.

#include <atomic>
#include <memory>

#include "penstock/strategy.h"

namespace penstock {

struct ScopeEntry {
  std::shared_ptr<StrategyCore> core;
  std::atomic<bool> open = true;
};

Scope open_scope(std::shared_ptr<StrategyCore> core);
/// Of the innermost open scope of this thread, or null.
StrategyCore* current_core();

}  // namespace penstock
