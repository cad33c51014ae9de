#pragma once
// Scheduling of the GIL for calls so short that waiting in the kernel costs more.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/thread.h"
#include "penstock/clock.h"
#include "trace/blocked.h"

namespace penstock::python {

/// A call of a few microseconds costs less than passing the GIL from thread to thread, and NumPy
/// releases it in the middle of every operation. So threads with such calls take turns: a thread
/// that finds another one in such a call yields for a moment, and then proceeds anyway: this
/// affects only speed, never correctness.
class ShortTurn {
 public:
  using Cost = std::atomic<std::int64_t>;  // of a call, in nanoseconds; 0: not known

  explicit ShortTurn(const Cost& cost) {
    const std::int64_t known = cost.load(std::memory_order_relaxed);
    if (known == 0 || known > kShort) return;
    wait_until([this] {
      mine_ = !taken.load(std::memory_order_relaxed) && !taken.exchange(true);
      return mine_;
    });
  }
  ~ShortTurn() {
    if (mine_) taken.store(false, std::memory_order_release);
  }
  ShortTurn(const ShortTurn&) = delete;
  ShortTurn& operator=(const ShortTurn&) = delete;

  /// Call it before taking the GIL for something else: lets the current short call finish.
  static void let_pass() {
    wait_until([] { return !taken.load(std::memory_order_relaxed); });
  }

  /// Lives as long as the call. The shortest recent time counts: others may have lost the GIL in
  /// the middle.
  class Measured {
   public:
    explicit Measured(Cost& cost) : cost_(cost), began_(Clock::real().now()) {}
    ~Measured() {
      const std::int64_t took = (Clock::real().now() - began_).count();
      const std::int64_t before = cost_.load(std::memory_order_relaxed);
      cost_ = before == 0 ? took : std::min(before + before / 32, took);
    }
    Measured(const Measured&) = delete;
    Measured& operator=(const Measured&) = delete;

   private:
    Cost& cost_;
    Nanoseconds began_;
  };

 private:
  static constexpr std::int64_t kShort = 15'000;
  static constexpr Nanoseconds kMoment = std::chrono::microseconds(20);
  static inline std::atomic<bool> taken{false};

  template <typename Condition>
  static void wait_until(Condition condition) {
    if (condition()) return;
    const Nanoseconds end = Clock::real().now() + kMoment;
    do {
      yield_thread();
    } while (!condition() && Clock::real().now() < end);
    trace::blocked_here().lock += trace::count_between(end - kMoment, Clock::real().now());
  }

  bool mine_ = false;
};

}  // namespace penstock::python
