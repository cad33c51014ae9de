#pragma once
// One pass of a plan on the pool: steps are opened in order, their blocks computed oldest first by
// whichever thread is free, and delivered in order. One slow sample holds up its own step only.

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/pool.h"
#include "base/thread_stack.h"
#include "order/geometry.h"
#include "penstock/batch.h"
#include "penstock/loader.h"
#include "plan/failures.h"
#include "plan/plan_data.h"
#include "run/budget.h"
#include "run/fetcher.h"
#include "run/gang.h"
#include "run/mold.h"
#include "run/pacing.h"
#include "run/sequencer.h"
#include "sample/batch_data.h"
#include "source/sequence.h"
#include "trace/activity.h"

namespace penstock {

/// A row that was computed to learn the spec; it is delivered, not computed again.
struct LearnedRow {
  std::uint64_t sample_id = 0;
  std::uint8_t flag = kRowGood;
  Sample sample = {};
  std::optional<Failure> failure = {};
};

/// The same for a step of which a function wanted to see all.
struct LearnedStep {
  explicit LearnedStep(std::size_t rows)
      : samples(rows), ids(rows), occurrence(rows), failed(rows, kRowGood) {}
  std::vector<Sample> samples;
  std::vector<std::uint64_t> ids;
  std::vector<std::uint64_t> occurrence;
  std::vector<std::uint8_t> failed;
  RowFailures failures;
};

struct RunStart {
  std::uint64_t pass = 0;
  std::uint64_t step = 0;  // first to deliver
  Geometry geometry;
  StreamPlace stream;  // where a stream goes on
};
struct RunSettings {
  std::string dataset;   // its name, for errors
  unsigned threads = 0;  // 0: everything in the consumer's thread
  std::uint64_t lookahead_bytes = UINT64_MAX;
  std::uint64_t lookahead_steps = 0;
  Nanoseconds stall_after = std::chrono::seconds(30);  // a wait this long is reported
  bool stall_is_error = false;
  std::function<void()> while_waiting;  // called now and then by who waits, without our locks
  Ledger* ledger = nullptr;             // where skipped samples go; null: failures are raised
  bool no_empty_share = false;          // a share that has no row left keeps one, as an empty one
  MoldFacts mold;
  Clock* clock = nullptr;
  Io* io = nullptr;                // null: the real one
  std::shared_ptr<ReadPace> pace;  // of earlier passes; null: nothing is known
};

/// The local shares of one step.
using StepBatches = std::vector<Batch>;

/// `next` is called by one thread, `stop` by any. Destroy after `stop`.
class PassRun final : public Work {
 public:
  /// Without a layout in `mold` it is learned from the first sample that is needed here.
  PassRun(std::shared_ptr<const PlanData> plan, Mold mold, RunStart start,
          const RunSettings& settings);
  ~PassRun() override;

  /// The next step, or nothing after the last. Throws SampleError (the step is not delivered),
  /// or CancelledError when stopped.
  std::optional<StepBatches> next();
  /// The next step if it lies ready and nothing in it failed; never waits, never throws. Never one
  /// where failures are skipped: the ledger may be full, which is an error.
  std::optional<StepBatches> next_if_ready();
  /// True when a step follows; of a stream, waits until that is known.
  bool has_next();
  /// The same, or nothing when it is not known within `patience`. Without threads of its own the
  /// pass pulls until it is known.
  std::optional<bool> has_next_within(Nanoseconds patience);
  /// Where the stream is after the steps that were delivered; `next` only after `has_next`.
  [[nodiscard]] StreamPlace stream_place();
  /// Wakes a waiting `next`, takes no more work and returns when no thread is inside, or after half
  /// a second: threads that are still inside a function then are abandoned and reported.
  void stop(Pool* pool);
  /// Hands the run to the pool; `self` is this.
  static void start(const std::shared_ptr<PassRun>& self, Pool& pool);

  bool run_one() override;

  /// Steps of the pass that the consumer has received, earlier runs included.
  [[nodiscard]] std::uint64_t delivered() const { return delivered_.load(); }
  [[nodiscard]] bool stopped() const;
  [[nodiscard]] std::uint32_t trace_run() const { return trace_run_; }
  /// The shape of its batches, once that is known.
  [[nodiscard]] Mold mold() const;
  [[nodiscard]] std::vector<Pacing::Decision> decisions() const;

 private:
  struct Flying;
  struct Piece {  // of work: rows of one share, or a whole step
    Flying* step = nullptr;
    std::size_t share = 0;
    std::uint64_t first = 0;
    std::uint64_t rows = 0;
    bool whole = false;
  };

  /// A thread inside `run_one`, and what it is doing.
  struct Task {
    enum class Kind : std::uint8_t { rows, pull, learn, help };
    Kind kind = Kind::rows;
    std::vector<Piece> pieces;
    std::uint64_t first_step = 0;
    std::uint64_t first_row = 0;
    std::uint32_t first_share = 0;
    // Of the first piece, for reports: its step may be delivered, and used again, before the task
    // ends.
    std::uint32_t leaf = 0;
    std::optional<std::uint64_t> asked_index = {};  // of a Sequence
    std::uint64_t step_bytes = 0;  // of the largest step it completed, where those differ
    ThreadId thread = this_thread_id();
    Nanoseconds began{0};
    trace::Activity activity;
  };

  [[nodiscard]] std::string doing(const Task& task) const;
  void report_abandoned(unsigned threads) const;
  /// A report about a wait, before the stacks of its threads are known.
  struct Stall {
    std::string head;
    std::vector<ThreadLine> lines;
    std::string tail;
  };
  [[nodiscard]] Stall stall(Nanoseconds waited) const;
  bool begin_task(Task& task);
  bool choose_task(Task& task) PENSTOCK_REQUIRES(mutex_);
  void end_task(Task& task, std::uint64_t rows);
  /// True when the consumer is to be told.
  bool left_task(Task& task, std::uint64_t rows);
  /// For threads that sleep. Not once it is stopped: a thread that was abandoned then comes back
  /// when the pool may be gone.
  void wake_if_starved() PENSTOCK_REQUIRES(mutex_);
  std::uint64_t compute_pieces(Task& task);
  /// How many of the first pieces one call can compute: their rows follow each other in one order.
  [[nodiscard]] std::size_t count_joinable(std::span<const Piece> pieces) const;
  Result<void> compute_joined(std::span<const Piece> pieces);
  bool claim(std::vector<Piece>& pieces) PENSTOCK_REQUIRES(mutex_);
  bool open_step() PENSTOCK_REQUIRES(mutex_);
  [[nodiscard]] std::unique_ptr<Flying> spare_flying() PENSTOCK_REQUIRES(mutex_);
  void fill(Flying& flying, std::uint64_t step, const std::shared_ptr<const BatchLayout>& layout);
  void begin_flight(Flying& flying);

  // Streams
  [[nodiscard]] bool may_pull() const PENSTOCK_REQUIRES(mutex_);
  std::uint64_t pull_steps(Task& task);
  bool pull_step(Flying& flying);
  bool learned(const Flying& flying);
  std::uint64_t publish_waiting();

  // Sequences
  void await_answer(Flying& flying, std::uint64_t step);
  Result<void> compute_asked(Flying& flying);
  [[nodiscard]] Failure too_few_rows(const Flying& flying, std::size_t rows) const;
  Result<void> ask(const Place& place, std::uint64_t step, SequenceBatch& batch);
  std::shared_ptr<const BatchLayout> layout_for(std::size_t rows);

  // Reading ahead
  void open_ahead() PENSTOCK_REQUIRES(mutex_);
  void queue_reads(Flying& flying);

  // Learning the shape from the first sample that can be computed
  void learn();
  /// Asks for what `learn` needs to look at rows of a step.
  const BlockView* rows_to_learn_from(std::uint64_t step, Place& place);
  [[noreturn]] void raise_at(Failure failure, std::uint64_t step) const;
  bool learn_from(std::uint64_t step, const Place& place, const BlockView* pulled);
  bool learn_from_others(std::uint64_t step, const Place& place, const BlockView* pulled,
                         std::uint64_t& tries);
  enum class Owner : std::uint8_t { us, another };
  bool learn_row(std::uint64_t step, const Place& place, std::uint64_t row, const BlockView* pulled,
                 Owner owner);
  bool learn_step(std::uint64_t step, const Place& place, const BlockView* pulled);
  void note_learned(std::uint64_t step, LearnedRow row);
  void set_mold(Mold mold);
  /// Writes a step that was computed to learn from it; false when it is another one.
  bool write_learned_step(Flying& flying);
  /// Writes the rows that were computed to learn from them: the first ones of the step that are
  /// ours. Returns how many.
  std::uint64_t write_learned_rows(Flying& flying);
  Result<void> compute(const Piece& piece);
  void finish(const Piece& piece, Result<void> done, Task& task);
  /// All rows are there: packs them, and counts what they take.
  std::uint64_t complete(Flying& flying);
  StepBatches deliver(Flying& flying);
  StepBatches deliver_handed();
  void write_ledger(std::uint64_t step, const std::vector<Failure>& failures);
  /// Rows of a share with what collects their failures, if policy says so.
  [[nodiscard]] BlockView rows_of(const Flying& flying, std::size_t share) const;
  /// Waits until `known()` holds; false when the data ended instead.
  template <typename Known>
  bool await(Known known);
  template <typename Known>
  bool is_known(Known known) const;
  bool await_head();
  /// Lets whoever owns the waiting thread look, every 50 ms; throws what that throws.
  void look_up(Nanoseconds& looked);
  /// Reports a wait that has lasted too long; the pause before the next report doubles.
  void watch(Nanoseconds began, Nanoseconds& report_after) const;
  [[nodiscard]] std::uint64_t in_flight() const {
    return opened_.load(std::memory_order_relaxed) - delivered_.load();
  }

  // Fixed after construction
  const std::shared_ptr<const PlanData> plan_;
  const RunStart start_;
  const RunSettings settings_;
  const std::uint64_t end_;  // first step that does not exist; of a stream nobody knows yet
  const bool stream_;
  const std::uint32_t trace_run_;
  Clock& clock_;
  Pool* pool_ = nullptr;

  // Fixed from when the shape is known; no step is opened before
  Mold mold_;
  std::map<std::uint64_t, std::vector<LearnedRow>> learned_rows_;  // by step
  std::size_t learned_count_ = 0;
  std::map<std::uint64_t, std::unique_ptr<LearnedStep>> learned_steps_;

  // Used by the one thread that pulls
  Sequencer sequencer_;
  PoolGang gang_;
  std::uint64_t pulled_position_;
  std::uint64_t pulled_step_;
  std::deque<std::unique_ptr<Flying>> waiting_;  // until the shape of batches is known

  // Own synchronisation
  Fetcher fetcher_;
  std::atomic<std::uint64_t> opened_{0};
  std::atomic<std::uint64_t> delivered_{0};
  std::atomic<bool> starved_{false};  // a thread found the window full
  std::atomic<std::uint64_t> window_{1};
  std::atomic<std::uint64_t> step_bytes_{0};  // that a step is expected to take
  std::atomic<bool> stop_asked_{false};       // as `stopped_`, for who must not wait for the mutex
  const std::shared_ptr<Pacing::Log> pacing_log_ = std::make_shared<Pacing::Log>();

  // The consumer's own
  std::deque<std::unique_ptr<Flying>> handed_;
  StreamPlace reached_;                         // of a stream: after the step delivered last
  std::vector<std::unique_ptr<Flying>> spent_;  // to be used again

  mutable Mutex mutex_;
  Condition head_ready_;
  std::map<std::size_t, std::shared_ptr<const BatchLayout>> layouts_
      PENSTOCK_GUARDED_BY(mutex_);  // of a Sequence's batches, by rows
  std::map<std::uint64_t, SequenceBatch> learned_batches_
      PENSTOCK_GUARDED_BY(mutex_);  // answers by step, asked for to learn from them
  std::deque<std::unique_ptr<Flying>> flying_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Flying>> spare_ PENSTOCK_GUARDED_BY(mutex_);
  std::size_t claim_step_ PENSTOCK_GUARDED_BY(mutex_) = 0;  // index in flying_
  std::size_t claim_share_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::uint64_t claim_row_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  Pacing pacing_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<Task*> tasks_ PENSTOCK_GUARDED_BY(mutex_);  // threads at work
  bool molded_ PENSTOCK_GUARDED_BY(mutex_) = false;
  bool alone_ PENSTOCK_GUARDED_BY(mutex_) = false;  // somebody pulls, or learns the shape
  bool ended_ PENSTOCK_GUARDED_BY(mutex_) = false;  // the stream
  std::vector<Failure> left_over_ PENSTOCK_GUARDED_BY(mutex_);  // failures after the last step
  bool consumer_waits_ PENSTOCK_GUARDED_BY(mutex_) = false;
  bool stopped_ PENSTOCK_GUARDED_BY(mutex_) = false;
  std::exception_ptr broken_ PENSTOCK_GUARDED_BY(mutex_);  // a fault of ours or of the machine
};

}  // namespace penstock
