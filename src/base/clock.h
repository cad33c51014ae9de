#pragma once
// Time is a seam: the engine asks a Clock, tests hand in one that moves only when told.

#include <chrono>
#include <cstdint>
#include <set>

#include "base/mutex.h"

namespace penstock {

using Nanoseconds = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  /// Time since an arbitrary start; never goes back.
  [[nodiscard]] virtual Nanoseconds now() const = 0;
  /// Returns once `now()` has moved on by `duration`.
  virtual void pause(Nanoseconds duration) = 0;

  static Clock& real();
};

/// A clock that stands still until `advance`. Thread-safe.
class VirtualClock final : public Clock {
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
  std::multiset<Nanoseconds> wakes_ PENSTOCK_GUARDED_BY(mutex_);  // of those who sleep
};

}  // namespace penstock
