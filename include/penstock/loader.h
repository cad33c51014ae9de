#pragma once
// A loader runs a dataset: it prepares batches in the background and returns them in order, each
// sample once per pass. It can stop and resume anywhere. All loaders of a process share one pool of
// threads.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <penstock/batch.h>
#include <penstock/dataset.h>
#include <penstock/epoch_iterator.h>
#include <penstock/iterator.h>
#include <penstock/ledger.h>
#include <penstock/options.h>
#include <penstock/plan.h>
#include <penstock/report.h>
#include <penstock/state.h>

namespace penstock {

/// Runs a dataset. A loader has one iterator of its own, which `next`, `state` and the others below
/// use, and can create more. Same threading rules as Iterator: use it from one thread at a time;
/// `stop`, `epoch`, `ledger`, `decisions` and `trace_run` may be called from any.
class Loader {
 public:
  /// Plans the dataset. Starts no threads and reads no data, unless the dataset has a select() or
  /// the cache() of a stream: then it runs the predicates and reads the stream, on the pool, and
  /// blocks until that is done (see Dataset::resolve). Throws ConfigError if the dataset has no
  /// batches, if the plan cannot work for these shares, or if the launcher's variables are
  /// inconsistent. Prints the plan's warnings.
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
  [[nodiscard]] std::shared_ptr<trace::Recorder> recorder() const { return own_->recorder(); }
  [[nodiscard]] std::uint32_t trace_run() const;

  /// `for (const Batch& batch : loader)` yields the rest of the epoch. Leaving the loop early ends
  /// the epoch: the next loop starts the next one. Blocks and throws like `next`.
  EpochIterator<Loader, Batch> begin();
  std::default_sentinel_t end() { return {}; }

 private:
  std::unique_ptr<Iterator> own_;
};

}  // namespace penstock
