#pragma once
// What a loader will do, decided before anything runs: steps, cuts, tail, memory. A plan is an
// immutable value, safe to use from any thread; constructing one computes no sample and starts no
// threads.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <penstock/batch.h>
#include <penstock/dataset.h>
#include <penstock/shares.h>

namespace penstock {

struct PlanData;

/// Epochs of a fixed number of steps. If that is less than a pass, the next epoch continues where
/// this one ended; if it is more, the dataset needs repeat().
struct EpochSteps {
  std::uint64_t steps = 1;
  bool restart = false;      // each epoch starts a new pass
  bool short_epoch = false;  // the end of the data ends the epoch early
};

struct PlanOptions {
  Shares shares = {};
  std::optional<Tail> tail = {};                 // for batch() nodes that do not set one
  std::optional<std::uint64_t> drawn_seed = {};  // for Seed::random(); drawn if not set
  std::optional<EpochSteps> epochs = {};         // none: an epoch is one pass
  std::string world = {};                        // where `shares` comes from, for `explain`
};

/// What the tails cost in each pass.
struct TailCost {
  std::uint64_t dropped = 0;   // samples left out
  std::uint64_t repeated = 0;  // samples that come twice
  std::uint64_t rows = 0;      // of padded steps
  std::uint64_t padded = 0;    // how many of these are padding
  bool pads = false;
};

/// The result of `Plan::check`.
struct PassCheck {
  /// The first violation.
  struct Wrong {
    std::optional<SampleKey> sample = {};
    std::uint64_t step = 0;
    std::uint32_t share = 0;
    std::string what = {};
  };
  static constexpr std::size_t kNamedMax = 16;

  std::uint64_t steps = 0;
  std::uint64_t samples = 0;   // in all shares, including those that a wrap repeats
  std::uint64_t repeated = 0;  // how many of these a wrap repeats
  std::uint64_t dropped = 0;
  std::vector<SampleKey> dropped_first = {};  // the first kNamedMax, by number
  std::optional<Wrong> wrong = {};            // none: the pass is as it should be
};

class Plan {
 public:
  /// Throws ConfigError if the dataset has no batches, has a select() that was not resolved, or
  /// cannot work with these options.
  explicit Plan(const Dataset& dataset, const PlanOptions& options = {});

  [[nodiscard]] const Dataset& dataset() const;
  [[nodiscard]] const Shares& shares() const;
  /// Number of steps of a pass.
  [[nodiscard]] Cardinality steps() const;
  /// Number of samples that a pass delivers, including those that a wrap repeats; nullopt if only
  /// walking through all steps would tell.
  [[nodiscard]] std::optional<Cardinality> samples() const;
  /// The largest global batch.
  [[nodiscard]] std::uint64_t batch_samples() const;
  /// Number of samples in each of the `total` shares of `step`, without padding. For a stream, that
  /// of a full step.
  [[nodiscard]] std::vector<std::uint64_t> cut(std::uint64_t step) const;
  /// Bytes of one batch of this process; nullopt if the element spec is not known before running.
  [[nodiscard]] std::optional<std::uint64_t> batch_bytes() const;
  [[nodiscard]] Digests digests() const;
  [[nodiscard]] TailCost tail_cost() const;
  /// Walks through pass `pass` without reading data and finds the first sample that is in no share,
  /// or in too many: each must come exactly once, unless a node repeats or omits samples. Takes
  /// time proportional to the number of samples, and one bit of memory per sample. Throws
  /// ConfigError for streams and endless data.
  [[nodiscard]] PassCheck check(std::uint64_t pass = 0) const;
  /// The plan as readable text.
  [[nodiscard]] std::string explain() const;

  /// The plan as JSON: nodes by verb and arguments, user functions and arrays by name.
  [[nodiscard]] std::string serialize() const;
  /// Parses what `serialize` returned. Functions and arrays are looked up by name in the datasets
  /// `having`. A select() in the plan is resolved, which runs its predicate and blocks. Throws
  /// ConfigError if the text is garbled, a name is missing or the data differs.
  static Plan parse(const std::string& text, const std::vector<Dataset>& having = {});

  [[nodiscard]] const std::shared_ptr<const PlanData>& data() const { return data_; }

 private:
  std::shared_ptr<const PlanData> data_;
};

/// A contiguous part of one global step: rows [first, first + count) of step `step` in `pass`. The
/// padding of a padded step comes last here.
struct BlockId {
  std::uint64_t pass = 0;
  std::uint64_t step = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// Computes one block in the calling thread, without a loader. Thread-safe. Throws SampleError if a
/// sample fails, ConfigError if the pass has no such block. A stream is read from its start.
Batch run_block(const Plan& plan, const BlockId& block);

}  // namespace penstock
