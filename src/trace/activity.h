#pragma once
// The current work of each thread, for stall reports: which op, with which samples.

#include <atomic>
#include <cstdint>
#include <string>

#include "base/mutex.h"
#include "trace/measured_call.h"

namespace penstock::trace {

/// Written by the working thread and read by reports; `cancelled` the other way round. Thread-safe.
class Activity {
 public:
  std::atomic<bool> cancelled{false};  // the current result is no longer needed
  std::atomic<std::uint64_t> first_sample{0};
  std::atomic<std::uint64_t> samples{0};
  Recorded recorded;  // set before the work begins

  /// A copy, since the op may be destroyed meanwhile. Empty before the first op.
  [[nodiscard]] std::string op() const {
    Lock lock(mutex_);
    return op_;
  }
  /// The thread enters `op` with `count` samples from id `first` on.
  void doing(const std::string& op, std::uint64_t first, std::uint64_t count) {
    {
      Lock lock(mutex_);
      op_ = op;
    }
    first_sample.store(first, std::memory_order_relaxed);
    samples.store(count, std::memory_order_relaxed);
  }
  /// It works on this one of them.
  void at_sample(std::uint64_t sample) {
    first_sample.store(sample, std::memory_order_relaxed);
    samples.store(1, std::memory_order_relaxed);
  }

 private:
  mutable Mutex mutex_;
  std::string op_ PENSTOCK_GUARDED_BY(mutex_);
};

}  // namespace penstock::trace
