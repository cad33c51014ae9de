#pragma once
// What a pass has in the air; part of pass_run.

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "plan/failures.h"
#include "run/pass_run.h"
#include "source/sequence.h"

namespace penstock {

/// A time as the trace has it.
inline std::uint64_t count_of(Nanoseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

/// A step on its way: its shares, and how many of their rows are still missing.
struct PassRun::Flying {
  std::uint64_t step = 0;
  Place place;
  std::vector<std::shared_ptr<BatchData>> shares;
  std::vector<std::uint64_t> first_row;  // of each share in the step
  /// Of each share, as it was cut. A batch says less once a thread has completed the step and left
  /// out what failed, while another may still look for rows to claim.
  std::vector<std::uint64_t> share_rows;
  std::uint64_t rows_here = 0;  // of all local shares
  std::atomic<std::uint64_t> missing{0};
  bool whole = false;
  /// What is claimed one by one: shares, or the step as one.
  [[nodiscard]] std::size_t parts() const { return asked_for ? 1 : shares.size(); }
  std::uint64_t learned_rows = 0;  // of the first shares, delivered without computing
  BudgetLease bytes;
  /// How many of the first rows of a share are there already.
  [[nodiscard]] std::uint64_t learned_rows_of(std::size_t share) const {
    std::uint64_t left = learned_rows;
    for (std::size_t i = 0; i < share; ++i) left -= std::min(left, share_rows[i]);
    return std::min(left, share_rows[share]);
  }
  bool reads_queued = false;
  std::vector<std::vector<std::uint8_t>> failed;  // by share and row, where policy is to skip
  mutable RowFailures failures;

  /// Rows that are not found by their positions. Thousands of small steps may be in the air, so
  /// only those that need it pay for it.
  struct Given {
    SequenceBatch asked;  // of a Sequence
    PulledStep pulled;    // of a stream
    BlockView rows;       // those of `pulled`
    Anchor after;         // where the stream is behind this step
  };
  std::unique_ptr<Given> given;
  bool asked_for = false;      // of a Sequence: by the thread that works on the step
  std::uint64_t index = 0;     // which batch of it
  std::uint64_t position = 0;  // of a stream: samples of the pass before the step
  Given& make_given() {
    if (!given) given = std::make_unique<Given>();
    return *given;
  }

  Mutex mutex;
  std::optional<Failure> failure PENSTOCK_GUARDED_BY(mutex);
  std::atomic<bool> ready{false};  // all rows are there; nobody but the consumer touches it now
};

/// The calling thread's memory for what lives while one block is computed.
Scratch& thread_scratch();

}  // namespace penstock
