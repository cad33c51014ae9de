#pragma once
// Time is injected: the engine asks a Clock, and tests pass one that moves only when they say so.
//
//   VirtualClock clock;
//   Loader loader(dataset, {.clock = &clock});
//   clock.advance(std::chrono::seconds(31));  // a `next` that waits now reports a stall

#include <chrono>
#include <memory>

namespace penstock {

using Nanoseconds = std::chrono::nanoseconds;

/// Implementations must be thread-safe: every thread of a loader or strategy calls its clock.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Time since an arbitrary start; monotonic. Must not block.
  [[nodiscard]] virtual Nanoseconds now() const = 0;
  /// Blocks until `now()` has advanced by `duration`.
  virtual void pause(Nanoseconds duration) = 0;

  /// The steady clock of the system.
  static Clock& real();
};

/// A clock that stands still until `advance`. Thread-safe. Must outlive every thread that sleeps on
/// it.
class VirtualClock : public Clock {
 public:
  VirtualClock();
  ~VirtualClock() override;
  VirtualClock(const VirtualClock&) = delete;
  VirtualClock& operator=(const VirtualClock&) = delete;

  /// Starts at 0.
  [[nodiscard]] Nanoseconds now() const override;
  /// Blocks until other threads have advanced the clock by `duration`.
  void pause(Nanoseconds duration) override;
  /// Moves the clock, and wakes the threads whose time has come.
  void advance(Nanoseconds duration);
  /// Blocks until at least `count` threads sleep on this clock.
  void wait_for_sleepers(int count);

 private:
  class Time;
  std::unique_ptr<Time> time_;
};

}  // namespace penstock
