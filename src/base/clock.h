#pragma once
// Time is injected: the engine reads a Clock, and tests pass one that they advance themselves.

#include <chrono>
#include <cstdint>
#include <set>

#include "base/mutex.h"

namespace penstock {

using Nanoseconds = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  /// Time since an arbitrary start; monotonic.
  [[nodiscard]] virtual Nanoseconds now() const = 0;
  /// Returns once `now()` has advanced by `duration`.
  virtual void pause(Nanoseconds duration) = 0;

  static Clock& real();
};

/// A clock that moves only when `advance` is called. Thread-safe.
class VirtualClock : public Clock {
 public:
  [[nodiscard]] Nanoseconds now() const override;
  void pause(Nanoseconds duration) override;
  void advance(Nanoseconds duration);
  /// Returns once at least `count` threads sleep on this clock.
  void wait_for_sleepers(int count);

 private:
  mutable Mutex mutex_;
  Condition changed_;
  Nanoseconds now_ PENSTOCK_GUARDED_BY(mutex_){0};
  std::multiset<Nanoseconds> wakes_
      PENSTOCK_GUARDED_BY(mutex_);  // wake-up times of the sleeping threads
};

}  // namespace penstock
