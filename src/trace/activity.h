#pragma once
// The current work of each thread, for stall reports: which op, with which samples.

#include <atomic>
#include <cstdint>
#include <string>

#include "base/mutex.h"

namespace penstock::trace {

/// Written by the working thread and read by reports; `cancelled` the other way round. Thread-safe.
class Activity {
 public:
  std::atomic<bool> cancelled{false};  // the current result is no longer needed
  std::atomic<std::uint64_t> first_sample{0};
  std::atomic<std::uint64_t> samples{0};

  /// A copy, since the op may be destroyed meanwhile. Empty before the first op.
  [[nodiscard]] std::string op() const {
    Lock lock(mutex_);
    return op_;
  }
  void set_op(const std::string& op) {
    Lock lock(mutex_);
    op_ = op;
  }

 private:
  mutable Mutex mutex_;
  std::string op_ PENSTOCK_GUARDED_BY(mutex_);
};

/// From now on the calling thread records its work in `activity`; null: nowhere. Returns the
/// previous one.
Activity* set_activity(Activity* activity);
/// Records that the calling thread enters `op` with `samples` samples from id `first_sample` on.
void doing(const std::string& op, std::uint64_t first_sample, std::uint64_t samples);
/// Records which of these samples it works on, if known. Returns false if the result is no longer
/// needed.
bool at_sample(std::uint64_t sample);
/// Returns false if the result of the calling thread is no longer needed.
bool still_wanted();

}  // namespace penstock::trace
