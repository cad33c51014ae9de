#pragma once
// A step between its opening and its delivery: its shares, and how many of their rows are missing.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "base/mutex.h"
#include "order/steps.h"
#include "penstock/batch.h"
#include "penstock/plan.h"
#include "penstock/result.h"
#include "plan/cursor.h"
#include "plan/failures.h"
#include "run/budget.h"
#include "sample/batch_data.h"
#include "source/sequence.h"

namespace penstock {

/// The local shares of one step.
using StepBatches = std::vector<Batch>;

/// Rows that the position of the step finds.
struct RowsByPosition {};

/// Rows of a stream, which were pulled when the step was opened.
struct PulledRows {
  PulledStep step;
  BlockView rows;              // those of `step`
  Anchor after;                // where the stream is after this step
  std::uint64_t position = 0;  // samples of the pass before the step
};

/// A batch of a Sequence, asked for by the thread that works on the step.
struct AskedRows {
  SequenceBatch batch;
  std::uint64_t index = 0;  // which batch of the Sequence
};

/// What all steps of a pass have in common.
struct StepSettings {
  std::uint64_t pass = 0;
  Shares shares = {};
  bool skips = false;           // failed rows are collected and left out
  bool masks = false;           // rows may be masked
  bool no_empty_share = false;  // a share that has no row left keeps one, as an empty one
};

/// Used again for another step after its delivery. Threads write different rows at once; each of
/// the other functions is called by the one thread that opens, completes or delivers the step.
class StepInFlight {
 public:
  explicit StepInFlight(const StepSettings& settings) : settings_(settings) {}

  // What it is
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] const Place& place() const { return place_; }
  /// True when a function must see all of its rows.
  [[nodiscard]] bool whole() const { return whole_; }
  /// Null where it is not of that kind.
  [[nodiscard]] PulledRows* pulled() const;
  [[nodiscard]] AskedRows* asked() const;

  // Opening
  /// Begins step `number`, whose rows are found by position.
  void open(std::uint64_t number, const Place& place);
  /// Begins step `number` of a stream; the caller pulls its rows.
  PulledRows& open_pulled(std::uint64_t number, std::uint64_t position);
  /// Begins step `number`, of which only the number of the batch in its Sequence is known.
  void open_asked(std::uint64_t number, const Place& place);
  /// Its rows are known now, and where they are.
  void set_place(const Place& place) { place_ = place; }
  /// Takes batches for the local shares from `ring`.
  void cut(bool whole, const std::shared_ptr<const BatchLayout>& layout, BatchRing& ring);
  /// The first `learned` local rows are there already.
  void set_learned(std::uint64_t learned);
  /// All other rows are to be computed; ready at once where there are none.
  void await_rows();

  // Shares
  struct Share {
    std::shared_ptr<BatchData> batch;
    std::uint64_t first_row = 0;  // in the step
    /// As it was cut. A batch says less once a thread has completed the step and left out what
    /// failed, while another may still look for rows to claim.
    std::uint64_t rows = 0;
    std::uint64_t learned = 0;  // of its first rows, which were computed before
  };
  [[nodiscard]] const std::vector<Share>& shares() const { return shares_; }
  /// Of all local shares.
  [[nodiscard]] std::uint64_t rows_here() const { return rows_here_; }
  /// Rows of a share, with what collects their failures where policy says so.
  [[nodiscard]] BlockView rows_of(std::size_t share) const;

  // Completion
  /// Of several failures the one of the first row counts, whichever thread was faster.
  void fail(Failure failure);
  [[nodiscard]] bool has_failed() const;
  /// `rows` more are there; true when none is missing.
  bool arrived(std::uint64_t rows) { return missing_.fetch_sub(rows) == rows; }
  /// All rows are there: packs them, and returns the bytes they take.
  std::uint64_t complete();
  void set_ready() { ready_ = true; }
  /// Nobody but the consumer uses it once it is ready.
  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] std::optional<Failure> take_failure();
  [[nodiscard]] StepBatches take_batches();

  BudgetLease bytes;
  bool reads_queued = false;
  mutable RowFailures failures;  // of rows that are skipped

 private:
  void begin(std::uint64_t number, const Place& place);

  const StepSettings settings_;
  std::uint64_t number_ = 0;
  Place place_;
  bool whole_ = false;
  // Thousands of small steps may be in flight, so only those that are given their rows pay for it.
  std::variant<RowsByPosition, std::unique_ptr<PulledRows>, std::unique_ptr<AskedRows>> rows_;
  std::vector<Share> shares_;
  std::uint64_t rows_here_ = 0;
  std::vector<std::vector<std::uint8_t>> flags_;  // by share and row, where rows may be left out
  std::atomic<std::uint64_t> missing_{0};
  std::atomic<bool> ready_{false};
  mutable Mutex mutex_;
  std::optional<Failure> failure_ PENSTOCK_GUARDED_BY(mutex_);
};

/// The rows a step was given, or null where they are found by position.
inline const BlockView* given_rows(const StepInFlight& step) {
  if (const PulledRows* const from = step.pulled()) return &from->rows;
  if (const AskedRows* const from = step.asked()) return &from->batch.view;
  return nullptr;
}

}  // namespace penstock
