#pragma once
// Who has the interpreter next, where calls are so short that waiting in the kernel costs more.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace penstock::python {

/// A call of a few microseconds costs less than handing the interpreter from thread to thread, and
/// NumPy hands it over in the middle of every operation. So threads with such calls take turns: a
/// thread that finds another one at it spins for a moment. Only a moment, and then it goes ahead:
/// this is about speed, never about who may.
class ShortTurn {
 public:
  using Cost = std::atomic<std::int64_t>;  // of a call, in nanoseconds; 0: not known

  explicit ShortTurn(const Cost& cost) {
    const std::int64_t known = cost.load(std::memory_order_relaxed);
    if (known == 0 || known > kShort) return;
    for (int tries = 0; tries < kTries && !mine_; ++tries) {
      mine_ = !taken.load(std::memory_order_relaxed) && !taken.exchange(true);
      if (!mine_) pause();
    }
  }
  ~ShortTurn() {
    if (mine_) taken.store(false, std::memory_order_release);
  }
  ShortTurn(const ShortTurn&) = delete;
  ShortTurn& operator=(const ShortTurn&) = delete;

  /// Lives as long as the call. The shortest one of late counts: others may have lost the
  /// interpreter in the middle.
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
  static constexpr int kTries = 200;  // 10 to 30 microseconds
  static inline std::atomic<bool> taken{false};

  static void pause() {
#if defined(__x86_64__)
    for (int i = 0; i < 8; ++i) __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  bool mine_ = false;
};

}  // namespace penstock::python
