#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <penstock/epoch_iterator.h>
#include <penstock/ledger.h>
#include <penstock/options.h>
#include <penstock/plan.h>
#include <penstock/report.h>
#include <penstock/state.h>
#include <penstock/step.h>

namespace penstock {

/// The argument of the function of `distribute_from_function`.
struct InputContext {
  std::uint32_t pipeline = 0;   // the number of this process's pipeline
  std::uint32_t pipelines = 1;  // one per process
  std::uint32_t replicas = 1;   // in all processes
  /// `global` divided by the number of replicas. Throws ConfigError if that leaves a remainder: use
  /// `distribute`, which cuts unevenly and is exact.
  [[nodiscard]] std::uint64_t per_replica_batch(std::uint64_t global) const;
};

struct DistributeOptions {
  /// The number of steps in an epoch, instead of one pass over the data. If it is less than a pass,
  /// the next epoch continues where this one ended; if it is more, the dataset needs repeat().
  std::optional<std::uint64_t> steps_per_epoch = {};
  bool restart = false;       // each epoch starts a new pass
  bool short_epoch = false;   // the end of the data ends the epoch early
  LoaderOptions loader = {};  // all but `shares`, which the strategy sets
};

/// A distributed dataset: prepares steps in the background and returns them in order, cut for the
/// replicas. Not thread-safe: use it from one thread at a time; only `stop` and `ledger` may be
/// called from any thread.
class Feed {
 public:
  Feed(Feed&&) noexcept;
  Feed& operator=(Feed&&) noexcept;
  ~Feed();

  /// Returns the next step, or nullopt at the end of an epoch; the call after that starts the next
  /// epoch. Blocks until all shares of this process are ready. Throws like `Iterator::next`, and
  /// ConfigError if a stream ends before steps_per_epoch without `short_epoch`.
  std::optional<Step> next();
  /// Returns true if the epoch has no further step. Does not compute one; for a stream it may block
  /// (see `Iterator::at_end`).
  [[nodiscard]] bool at_end() const;
  [[nodiscard]] const Plan& plan() const;
  /// Number of steps in an epoch. Throws ConfigError for a stream without steps_per_epoch.
  [[nodiscard]] std::uint64_t size() const;
  /// The current epoch, from 0.
  [[nodiscard]] std::uint64_t epoch() const;
  /// Moves to the start of `epoch`. Right after `restore`, passing the epoch of that state keeps
  /// the position in it. Throws ConfigError if epochs are parts of a longer pass.
  void set_epoch(std::uint64_t epoch);
  /// The position after the last step that `next` returned, the same on every process. Blocks and
  /// throws like `Iterator::state`.
  [[nodiscard]] State state() const;
  /// Moves to the position of `state`, also if it was saved with a different number of replicas.
  /// Throws StateError if the state is of another dataset or was saved in the middle of an epoch of
  /// more steps.
  void restore(const State& state);
  /// Like `Iterator::stop`: a `next` that waits throws CancelledError; `next` resumes. May be
  /// called from any thread.
  void stop();
  /// The samples skipped under OnError::skip. Thread-safe.
  [[nodiscard]] const Ledger& ledger() const;
  /// What the current epoch did so far, or the last one. Thread-safe.
  [[nodiscard]] Report report() const;

  /// `for (const Step& step : feed)` yields the rest of the epoch. Leaving the loop early ends the
  /// epoch. Blocks and throws like `next`.
  EpochIterator<Feed, Step> begin();
  std::default_sentinel_t end() { return {}; }

 private:
  friend class Strategy;
  class Impl;
  explicit Feed(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock
