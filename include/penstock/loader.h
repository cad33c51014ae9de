#pragma once
// A loader runs a dataset: batches come ready, in order, each sample once, and it can stop and go
// on anywhere. Several loaders of a process share one pool of threads.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <penstock/batch.h>
#include <penstock/dataset.h>
#include <penstock/plan.h>
#include <penstock/report.h>
#include <penstock/state.h>

namespace penstock {

class Clock;
class Io;

/// What happens when a sample cannot be made.
enum class OnError : std::uint8_t {
  raise,  // the first sample that cannot be made ends the run, with its name
  skip,   // it is left out (a padded batch keeps its row, as an empty one) and written to the
          // ledger; IO errors that may pass are still raised
};

struct LedgerEntry {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  SampleKey sample;
  std::string op;
  std::string reason;
  std::string file = {};  // the sample is in, if it is in one
};

/// The samples a loader left out: what, where and why. Thread-safe.
class Ledger {
 public:
  /// With a `file` every entry is appended to it as one line of JSON; what cannot be written is
  /// reported once and tried again later. More than `limit` entries in an epoch end the run.
  Ledger(std::string file, std::uint64_t limit);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Throws SampleError naming the first ten of the epoch, and the file, beyond the limit.
  void add(const std::vector<LedgerEntry>& entries);
  /// The latest 1,000 entries.
  [[nodiscard]] std::vector<LedgerEntry> entries() const;
  [[nodiscard]] std::uint64_t count() const;
  /// A table for people.
  [[nodiscard]] std::string text() const;

 private:
  class Entries;
  void write(const std::string& lines);
  std::string file_;
  std::unique_ptr<Entries> entries_;
};

/// What becomes of a share that has no sample in some step.
enum class Empty : std::uint8_t {
  refuse,   // a plan with one is a ConfigError, for loops that cannot leave out a step; where all
            // rows of a share are skipped, one stays, as an empty one
  deliver,  // it comes as a batch of 0 rows
};

struct LoaderOptions {
  /// Which part of each step is served here. By default this process's, one share for each process
  /// that its launcher started: torchrun, TF_CONFIG, srun, Open MPI or a Kubernetes Job.
  std::optional<Shares> shares = {};
  /// Who said so, where the program took `shares` from a launcher or a process group.
  std::string shares_from = {};
  std::optional<Tail> tail = {};    // where batch() named none
  std::optional<Empty> empty = {};  // default: refuse where a launcher set the shares, else deliver
  std::optional<unsigned> threads = {};               // at most so many of the pool's; 0 = inline
  std::optional<std::uint64_t> lookahead_bytes = {};  // for batches that wait
  OnError on_error = OnError::raise;
  std::string ledger_file = {};                  // where skipped samples are written, if anywhere
  std::optional<std::uint64_t> skip_limit = {};  // an epoch; default: 10, or 1 in 1,000 if more
  /// A wait this long is reported with who holds it up; or is an error, if `stall_is_error`.
  std::chrono::milliseconds stall_after = std::chrono::seconds(30);
  bool stall_is_error = false;
  /// Called about every 50 ms by a thread that waits in `next`. What it throws ends the wait and
  /// leaves the loader as it is: the step can be asked for again.
  std::function<void()> while_waiting = {};
  std::shared_ptr<Allocator> allocator = {};  // for slabs; the heap by default
  Clock* clock = nullptr;                     // for tests
  Io* io = nullptr;                           // for tests; outlives every read that hangs in it
};

/// One walk through the epochs, with a cursor of its own. Call from one thread; `stop`, `epoch`,
/// `ledger`, `decisions`, `report` and `trace_run` from any.
class Iterator {
 public:
  Iterator(Iterator&&) noexcept;
  Iterator& operator=(Iterator&&) noexcept;
  ~Iterator();

  /// The next batch, or nothing at the end of an epoch; the call after that begins the next one.
  /// Throws SampleError naming the sample; the step can then be asked for again.
  std::optional<Batch> next();
  /// All local shares of the next step.
  std::optional<std::vector<Batch>> next_step();
  /// What `next` would return if that lies ready; nothing if it must be waited for, if it failed,
  /// or at the end. Never waits and never calls a user's function.
  std::optional<Batch> next_if_ready();
  /// True when the epoch has no further step: known without computing one.
  [[nodiscard]] bool at_end() const;

  [[nodiscard]] std::uint64_t epoch() const;
  /// Goes to the start of an epoch. Right after `restore`, the epoch of that state keeps the
  /// position in it: training loops call this at the top of every epoch.
  void set_epoch(std::uint64_t epoch);
  [[nodiscard]] State state() const;
  /// Throws StateError when the state is of another dataset.
  void restore(const State& state);
  /// Computes step `step` of the current epoch again, alone.
  [[nodiscard]] std::vector<Batch> replay(std::uint64_t step) const;
  /// Ends a wait in `next` with CancelledError and lets the threads go. `next` starts them again.
  void stop();
  /// What was left out under OnError::skip.
  [[nodiscard]] const Ledger& ledger() const;
  /// How far ahead this epoch works, how much a thread takes at a time, and why: a line for each
  /// change.
  [[nodiscard]] std::vector<std::string> decisions() const;
  /// Counters and times of the epoch under way, or of the last one.
  [[nodiscard]] Report report() const;
  /// Number of this epoch's events in the trace.
  [[nodiscard]] std::uint32_t trace_run() const;

 private:
  friend class Loader;
  class Impl;
  explicit Iterator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

class Loader {
 public:
  /// Throws ConfigError where the plan would not work, or the launcher's variables are wrong.
  explicit Loader(const Dataset& dataset, const LoaderOptions& options = {});
  /// Runs `plan`, which has the shares and the tail: leave them out of `options`.
  explicit Loader(const Plan& plan, const LoaderOptions& options = {});
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();

  [[nodiscard]] const Plan& plan() const;
  /// Steps of an epoch; throws ConfigError when endless.
  [[nodiscard]] std::uint64_t size() const;
  /// Another iterator, at the start of epoch 0, with its own cursor and state.
  [[nodiscard]] Iterator iterate() const;

  // The loader's own iterator
  std::optional<Batch> next();
  std::optional<std::vector<Batch>> next_step();
  [[nodiscard]] bool at_end() const;
  [[nodiscard]] std::uint64_t epoch() const;
  /// As `Iterator::set_epoch`.
  void set_epoch(std::uint64_t epoch);
  [[nodiscard]] State state() const;
  void restore(const State& state);
  /// Step `step` of the current epoch again; its one batch here.
  [[nodiscard]] Batch step(std::uint64_t step) const;
  void stop();
  [[nodiscard]] const Ledger& ledger() const { return own_->ledger(); }
  [[nodiscard]] std::vector<std::string> decisions() const { return own_->decisions(); }
  [[nodiscard]] Report report() const { return own_->report(); }
  [[nodiscard]] std::uint32_t trace_run() const;

  /// `for (const Batch& batch : loader)`: what is left of the epoch. A loop that was left early
  /// ends its epoch.
  class EpochIterator;
  struct EpochEnd {};
  EpochIterator begin();
  EpochEnd end() { return {}; }

 private:
  std::unique_ptr<Iterator> own_;
  bool in_loop_ = false;
  std::uint64_t loop_batches_ = 0;
};

class Loader::EpochIterator {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;
  explicit EpochIterator(Loader* loader) : loader_(loader) { ++*this; }
  const Batch& operator*() const { return *batch_; }
  EpochIterator& operator++() {
    batch_ = loader_->next();
    if (!batch_) loader_->in_loop_ = false;
    ++loader_->loop_batches_;
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const EpochIterator& it, EpochEnd) { return !it.batch_; }

 private:
  Loader* loader_;
  std::optional<Batch> batch_;
};

}  // namespace penstock
