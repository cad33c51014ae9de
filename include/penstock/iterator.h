#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <penstock/batch.h>
#include <penstock/ledger.h>
#include <penstock/report.h>
#include <penstock/state.h>

namespace penstock {

namespace trace {
class Recorder;
}

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
  /// What counts for the report; null before the first step. For strategies.
  [[nodiscard]] std::shared_ptr<trace::Recorder> recorder() const;
  /// The number under which this epoch's events are recorded in the trace. Thread-safe.
  [[nodiscard]] std::uint32_t trace_run() const;

 private:
  friend class Loader;
  class Impl;
  explicit Iterator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
