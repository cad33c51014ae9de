#pragma once
// A loader runs a dataset: it prepares batches in the background and returns them in order, each
// sample once per pass. It can stop and resume anywhere. All loaders of a process share one pool of
// threads.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <penstock/batch.h>
#include <penstock/dataset.h>
#include <penstock/epoch_iterator.h>
#include <penstock/plan.h>
#include <penstock/report.h>
#include <penstock/state.h>

namespace penstock {

class Clock;
class Io;

/// What to do with a sample that fails.
enum class OnError : std::uint8_t {
  raise,  // `next` throws a SampleError that names the sample
  skip,   // the sample is left out (a padded batch keeps its row, marked as padding) and added to
          // the ledger; transient I/O errors still throw, after retries
};

struct LedgerEntry {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  SampleKey sample;
  std::string op;
  std::string reason;
  std::string file = {};  // that holds the sample, if any
};

/// The samples that a loader skipped: which, where and why. Thread-safe.
class Ledger {
 public:
  /// With a `file`, each entry is appended to it as one line of JSON. If that fails, it is reported
  /// once and retried with the next entries. More than `limit` entries in an epoch end the run.
  Ledger(std::string file, std::uint64_t limit);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Throws SampleError, naming the first ten entries of the epoch and the file, once the epoch has
  /// more than `limit` entries.
  void add(const std::vector<LedgerEntry>& entries);
  /// The latest 1,000 entries, oldest first.
  [[nodiscard]] std::vector<LedgerEntry> entries() const;
  /// Number of entries in all epochs.
  [[nodiscard]] std::uint64_t count() const;
  /// The count and the latest entries as readable text.
  [[nodiscard]] std::string text() const;

 private:
  class Entries;
  void write(const std::string& lines);
  std::string file_;
  std::unique_ptr<Entries> entries_;
};

/// What to do with a share that has no sample in some step.
enum class Empty : std::uint8_t {
  refuse,   // the constructor throws ConfigError, for loops that cannot skip a step; if all rows of
            // a share fail and are skipped, one row stays, with weight 0
  deliver,  // deliver a batch of 0 rows
};

struct LoaderOptions {
  /// Which share of each step to load. Default: one share per process of the launcher (torchrun,
  /// TF_CONFIG, srun, Open MPI or a Kubernetes Job), and this process's rank among them.
  std::optional<Shares> shares = {};
  /// Where `shares` came from, if the program took it from a launcher or a process group; shown in
  /// the plan.
  std::string shares_from = {};
  std::optional<Tail> tail = {};    // for batch() nodes that do not set one
  std::optional<Empty> empty = {};  // default: refuse if a launcher set the shares, else deliver
  std::optional<unsigned> threads = {};  // at most this many of the pool's; 0: the calling thread
  std::optional<std::uint64_t> lookahead_bytes = {};  // limit for batches prepared in advance
  OnError on_error = OnError::raise;
  std::string ledger_file = {};                  // file for skipped samples; none if empty
  std::optional<std::uint64_t> skip_limit = {};  // per epoch; default: 10, or 1 in 1,000 if more
  /// A wait this long is reported with the op and the sample that cause it. With `stall_is_error`,
  /// `next` throws ResourceError instead.
  std::chrono::milliseconds stall_after = std::chrono::seconds(30);
  bool stall_is_error = false;
  /// Called about every 50 ms by a thread that waits in `next`. An exception from it ends the wait
  /// and is rethrown by `next`; the step is not lost: call `next` again.
  std::function<void()> while_waiting = {};
  std::shared_ptr<Allocator> allocator = {};  // for slabs; the heap by default
  Clock* clock = nullptr;                     // for tests
  Io* io = nullptr;                           // for tests; must outlive every read that hangs
};

/// One traversal of the epochs, with its own position.
///
/// Not thread-safe: use an iterator from one thread at a time. Only `stop`, `epoch`, `ledger`,
/// `decisions`, `report` and `trace_run` may be called from any thread, also while another is in
/// `next`. Several iterators, of one loader or of several, may run at the same time in different
/// threads.
///
/// The first `next` of an epoch starts the work on the pool's threads. The destructor stops it like
/// `stop` and reports errors instead of throwing them.
class Iterator {
 public:
  Iterator(Iterator&&) noexcept;
  Iterator& operator=(Iterator&&) noexcept;
  ~Iterator();

  /// Returns the next batch, or nullopt at the end of an epoch; the call after that starts the next
  /// epoch. Blocks until the batch is ready. Without threads (`threads = 0`) it computes the batch
  /// in the calling thread.
  ///
  /// Throws SampleError if a sample of the step failed, CancelledError if `stop` was called
  /// meanwhile, ResourceError if memory or threads ran out or a stall is an error, and whatever
  /// `while_waiting` throws. After an exception the position has not moved: the next call computes
  /// the same step again. Throws ConfigError if the loader serves several shares: use `next_step`.
  std::optional<Batch> next();
  /// Like `next`, but returns all shares of the step that this loader serves, in share order.
  std::optional<std::vector<Batch>> next_step();
  /// Returns what `next` would return if that is ready. Returns nullopt if `next` would block or
  /// throw, at the end of an epoch, under OnError::skip, and if the loader serves several shares.
  /// Never blocks and never calls a user's function.
  std::optional<Batch> next_if_ready();
  /// Returns true if the epoch has no further step. Does not compute one, but for a stream it
  /// blocks until the next step, or the end, is known, and throws like `next`.
  [[nodiscard]] bool at_end() const;

  /// The current epoch, from 0. Thread-safe.
  [[nodiscard]] std::uint64_t epoch() const;
  /// Moves to the start of `epoch` and cancels work in flight. Right after `restore`, passing the
  /// epoch of that state keeps the position in it, because training loops call `set_epoch` at the
  /// top of every epoch.
  void set_epoch(std::uint64_t epoch);
  /// The position after the last batch that `next` returned; batches prepared in advance do not
  /// count. After the last batch of an epoch it is the start of the next one. Does not block for
  /// indexed data; for a stream it may wait up to a second to find out whether the epoch has ended.
  /// Throws StateError if a generator's `save` returns more than a state holds (64 KB).
  [[nodiscard]] State state() const;
  /// Moves to the position of `state` and cancels work in flight. Throws StateError
  /// if the state is of another dataset or does not fit this one. If only functions or ops differ,
  /// that is reported.
  void restore(const State& state);
  /// Computes step `step` of the current epoch again, in the calling thread, and returns the shares
  /// that this loader serves. The position does not move. A stream is read again from where this
  /// epoch was entered. Throws SampleError, and ConfigError for a step that the epoch does not have
  /// or that was before the restored state.
  [[nodiscard]] std::vector<Batch> replay(std::uint64_t step) const;
  /// Cancels work in flight: a `next` that waits throws CancelledError. Blocks up to half a second
  /// for threads inside a user's function; those that do not return are abandoned and reported. The
  /// position does not move, and `next` starts the work again. A no-op if nothing runs. May be
  /// called from any thread. Throws ConfigError if a Sequence with `pure` returned different
  /// batches for one index.
  void stop();
  /// The samples skipped under OnError::skip. Thread-safe; valid as long as the iterator.
  [[nodiscard]] const Ledger& ledger() const;
  /// How many steps this epoch prepares in advance, how many rows a task computes, and why: one
  /// line per change; empty when nothing runs. Thread-safe.
  [[nodiscard]] std::vector<std::string> decisions() const;
  /// Counters and times of the current epoch, or of the last one. Thread-safe.
  [[nodiscard]] Report report() const;
  /// The number under which this epoch's events are recorded in the trace. Thread-safe.
  [[nodiscard]] std::uint32_t trace_run() const;

 private:
  friend class Loader;
  class Impl;
  explicit Iterator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Runs a dataset. A loader has one iterator of its own, which `next`, `state` and the others below
/// use, and can create more. Same threading rules as Iterator: use it from one thread at a time;
/// `stop`, `epoch`, `ledger`, `decisions` and `trace_run` may be called from any.
class Loader {
 public:
  /// Plans the dataset. Starts no threads and reads no data, unless the dataset has a select():
  /// then it runs the predicates on the pool and blocks until they are done (see
  /// Dataset::resolve). Throws ConfigError if the dataset has no batches, if the plan cannot work
  /// for these shares, or if the launcher's variables are inconsistent. Prints the plan's warnings.
  explicit Loader(const Dataset& dataset, const LoaderOptions& options = {});
  /// Runs `plan`, which has the shares and the tail: throws ConfigError if `options` sets them too.
  explicit Loader(const Plan& plan, const LoaderOptions& options = {});
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();

  /// The plan that this loader runs. `restore` may replace it, if the state has a drawn seed.
  [[nodiscard]] const Plan& plan() const;
  /// Number of steps in an epoch. Throws ConfigError if the data is endless or a stream.
  [[nodiscard]] std::uint64_t size() const;
  /// Returns another iterator, at the start of epoch 0, with its own position and ledger. It shares
  /// the plan and the options; it may outlive the loader.
  [[nodiscard]] Iterator iterate() const;

  // The loader's own iterator: each function does what the function of Iterator does.
  std::optional<Batch> next();
  std::optional<std::vector<Batch>> next_step();
  [[nodiscard]] bool at_end() const;
  [[nodiscard]] std::uint64_t epoch() const;
  void set_epoch(std::uint64_t epoch);
  [[nodiscard]] State state() const;
  void restore(const State& state);
  /// Like `Iterator::replay`, for a loader of one share. Throws ConfigError if it serves several.
  [[nodiscard]] Batch step(std::uint64_t step) const;
  void stop();
  [[nodiscard]] const Ledger& ledger() const { return own_->ledger(); }
  [[nodiscard]] std::vector<std::string> decisions() const { return own_->decisions(); }
  [[nodiscard]] Report report() const { return own_->report(); }
  [[nodiscard]] std::uint32_t trace_run() const;

  /// `for (const Batch& batch : loader)` yields the rest of the epoch. Leaving the loop early ends
  /// the epoch: the next loop starts the next one. Blocks and throws like `next`.
  EpochIterator<Loader, Batch> begin();
  std::default_sentinel_t end() { return {}; }

 private:
  std::unique_ptr<Iterator> own_;
};

}  // namespace penstock
