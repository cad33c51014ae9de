#pragma once
// Detects a loop that takes one batch from each new iterator: it sees the start of an epoch again
// and again, and pays for starting it each time.

#include <atomic>

#include "base/fault.h"
#include "base/report.h"

namespace penstock {

/// Shared by a loader and its iterators. Thread-safe.
class OneBatchWatch {
 public:
  /// An iterator or a loop has ended after `batches` batches.
  void done(std::uint64_t batches) {
    constexpr unsigned kTooMany = 3;
    if (batches == 0) return;
    if (batches > 1) {
      in_a_row_ = 0;
    } else if (++in_a_row_ == kTooMany && !PENSTOCK_OFF("warn.one_batch_iterators")) {
      report(
          "three iterators in a row returned one batch each, and each starts a new epoch: keep one "
          "iterator and call next() on it");
    }
  }

 private:
  std::atomic<unsigned> in_a_row_{0};
};

}  // namespace penstock
