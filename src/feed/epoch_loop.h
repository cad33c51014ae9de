#pragma once
// Each `for` is an epoch: the rule that Loader, Feed and the loader of Python share.

#include <atomic>
#include <cstdint>

#include "base/fault.h"
#include "base/report.h"

namespace penstock {

/// Detects loops that take one batch from each new iterator: they see the start of an epoch again
/// and again, and pay for starting it each time. Shared by a loader and its iterators. Thread-safe.
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

/// The loops over one position, one after the other. A loop that is left inside its epoch ends that
/// epoch: the next loop begins the next one. A loop that came to the end, and one whose position
/// was moved meanwhile, leave the position alone. Thread-safe.
class EpochLoop {
 public:
  explicit EpochLoop(OneBatchWatch& watch) : watch_(watch) {}

  /// A loop begins. Returns true if the one before was left inside its epoch: move to the next.
  [[nodiscard]] bool begin() {
    const bool left = inside_.exchange(false);
    if (left) watch_.done(batches_);
    batches_ = 0;
    return left;
  }
  /// The loop requests a batch. It is inside the epoch from then on, also if the request fails.
  void enter() { inside_ = true; }
  void took_batch() { ++batches_; }
  /// The end of the epoch was returned.
  void end_epoch() {
    constexpr std::uint64_t kWholeEpoch = 2;  // not one batch, also if the epoch has only one
    if (inside_.exchange(false)) watch_.done(kWholeEpoch);
  }
  /// The position was set, for the next loop to begin there.
  void move() { inside_ = false; }

  [[nodiscard]] bool inside() const { return inside_; }
  /// Since the last loop began.
  [[nodiscard]] std::uint64_t batches() const { return batches_; }

 private:
  OneBatchWatch& watch_;
  std::atomic<bool> inside_{false};
  std::atomic<std::uint64_t> batches_{0};
};

}  // namespace penstock
