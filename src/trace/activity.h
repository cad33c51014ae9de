#pragma once
// What a thread is doing right now, for reports about waits: which op, with which samples.

#include <atomic>
#include <cstdint>
#include <string>

#include "base/mutex.h"

namespace penstock::trace {

/// Written by the thread that works, read by whoever reports; `cancelled` the other way round.
/// Thread-safe.
class Activity {
 public:
  std::atomic<bool> cancelled{false};  // what is being computed is not wanted any more
  std::atomic<std::uint64_t> first_sample{0};
  std::atomic<std::uint64_t> samples{0};

  /// A copy: the op may be gone before anybody asks. Nothing before the first op.
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

/// From now on `activity` says what the calling thread does; null for nobody. Returns the one
/// before.
Activity* set_activity(Activity* activity);
/// Notes that the calling thread enters `op` with `samples` samples from id `first_sample` on.
void doing(const std::string& op, std::uint64_t first_sample, std::uint64_t samples);
/// Notes which of these samples it is at, where that is known. False when it is not wanted any
/// more.
bool at_sample(std::uint64_t sample);
/// False when what the calling thread makes is not wanted any more.
bool still_wanted();

}  // namespace penstock::trace
