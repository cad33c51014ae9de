#pragma once
// A step between opening and delivery: its shares, and how many of their rows are missing.

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

/// Rows found by the position of the step.
struct RowsByPosition {};

/// Rows of a stream, pulled when the step was opened.
struct PulledRows {
  PulledStep step;
  BlockView rows;              // those of `step`
  Anchor after;                // the position of the stream after this step
  std::uint64_t position = 0;  // samples of the pass before the step
};

/// A batch of a Sequence, requested by the thread that computes the step.
struct AskedRows {
  SequenceBatch batch;
  std::uint64_t index = 0;  // index of the batch in the Sequence
};

/// Settings that all steps of a pass share.
struct StepSettings {
  std::uint64_t pass = 0;
  Shares shares = {};
  bool skips = false;           // collect and skip failed rows
  bool masks = false;           // rows may be masked
  bool no_empty_share = false;  // a share that lost all its rows keeps one, as an empty one
};

/// Reused for another step after delivery. Threads write different rows concurrently; each of the
/// other functions is called by the one thread that opens, completes or delivers the step.
class StepInFlight {
 public:
  explicit StepInFlight(const StepSettings& settings) : settings_(settings) {}

  // Properties
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] const Place& place() const { return place_; }
  /// True if a function needs all of its rows.
  [[nodiscard]] bool whole() const { return whole_; }
  /// Null for a step of another kind.
  [[nodiscard]] PulledRows* pulled() const;
  [[nodiscard]] AskedRows* asked() const;

  // Opening
  /// Starts step `number`, whose rows are found by position.
  void open(std::uint64_t number, const Place& place);
  /// Starts step `number` of a stream; the caller pulls its rows.
  PulledRows& open_pulled(std::uint64_t number, std::uint64_t position);
  /// Starts step `number` of a Sequence; only the index of its batch is known.
  void open_asked(std::uint64_t number, const Place& place);
  /// Sets the place of its rows when it is known.
  void set_place(const Place& place) { place_ = place; }
  /// Takes batches for the local shares from `ring`.
  void cut(const BatchForm& form, const std::shared_ptr<const BatchLayout>& layout,
           BatchRing& ring);
  /// Marks the first `learned` local rows as computed.
  void set_learned(std::uint64_t learned);
  /// Counts all other rows as missing; ready at once if there are none.
  void await_rows();

  // Shares
  struct Share {
    std::shared_ptr<BatchData> batch;
    std::uint64_t first_row = 0;  // in the step
    /// As it was cut. The batch has fewer rows once a thread has completed the step and removed
    /// failed ones, while another thread may still look for rows to claim.
    std::uint64_t rows = 0;
    std::uint64_t learned = 0;  // of its first rows, computed before
  };
  [[nodiscard]] const std::vector<Share>& shares() const { return shares_; }
  /// Of all local shares.
  [[nodiscard]] std::uint64_t rows_here() const { return rows_here_; }
  /// Rows of a share, with a collector of failures if they are skipped.
  [[nodiscard]] BlockView rows_of(std::size_t share) const;

  // Completion
  /// Of several failures the one of the first row is used, whichever thread reports first.
  void fail(Failure failure);
  [[nodiscard]] bool has_failed() const;
  /// Counts `rows` as computed; returns true if none is missing.
  bool arrived(std::uint64_t rows) { return missing_.fetch_sub(rows) == rows; }
  /// Called when all rows are computed: packs them and returns their bytes. The step fails if they
  /// cannot be padded.
  std::uint64_t complete();
  void set_ready() { ready_ = true; }
  /// Once it is ready, only the consumer uses it.
  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] std::optional<Failure> take_failure();
  [[nodiscard]] StepBatches take_batches();

  BudgetLease bytes;
  bool reads_queued = false;
  mutable RowFailures failures;  // of skipped rows

 private:
  void begin(std::uint64_t number, const Place& place);
  void open_sizes();

  const StepSettings settings_;
  std::uint64_t number_ = 0;
  Place place_;
  bool whole_ = false;
  // Thousands of small steps may be in flight, so only pulled and requested steps pay for this.
  std::variant<RowsByPosition, std::unique_ptr<PulledRows>, std::unique_ptr<AskedRows>> rows_;
  std::vector<Share> shares_;
  std::uint64_t rows_here_ = 0;
  std::vector<std::vector<std::uint8_t>> flags_;  // by share and row, if rows may be skipped
  std::atomic<std::uint64_t> missing_{0};
  std::atomic<bool> ready_{false};
  mutable Mutex mutex_;
  std::optional<Failure> failure_ PENSTOCK_GUARDED_BY(mutex_);
};

/// The rows of a pulled or requested step; null if they are found by position.
inline const BlockView* given_rows(const StepInFlight& step) {
  if (const PulledRows* const from = step.pulled()) return &from->rows;
  if (const AskedRows* const from = step.asked()) return &from->batch.view;
  return nullptr;
}

}  // namespace penstock
