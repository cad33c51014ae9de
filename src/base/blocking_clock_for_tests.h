#pragma once
// For tests: a clock that functions of a loader block on.

#include "base/pool.h"
#include "base/thread.h"
#include "penstock/clock.h"

namespace penstock {

/// Its destructor wakes all sleepers and returns after every abandoned thread has ended. Declare it
/// before the loader, and after everything else that the blocking function uses.
class BlockingClock final : public VirtualClock {
 public:
  BlockingClock() = default;
  ~BlockingClock() override {
    advance(Nanoseconds::max() - now());
    while (Pool::abandoned() > 0) yield_thread();
  }
  BlockingClock(const BlockingClock&) = delete;
  BlockingClock& operator=(const BlockingClock&) = delete;
};

}  // namespace penstock
