#pragma once
// What a loader will do, decided before anything runs: steps, cuts, tail, memory. A plan is a
// value; making one reads no data and starts no thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <penstock/batch.h>
#include <penstock/dataset.h>

namespace penstock {

struct PlanData;

/// Which shares of each step are served here: `count` of `total`, from `first` on.
struct Shares {
  std::uint32_t total = 1;
  std::uint32_t first = 0;
  std::uint32_t count = 1;
};

/// Epochs that are counted in steps. Below a pass the next epoch goes on where this one ended;
/// above a pass the dataset needs repeat().
struct EpochSteps {
  std::uint64_t steps = 1;
  bool restart = false;      // each epoch starts a new pass
  bool short_epoch = false;  // data that ends before them ends the epoch
};

struct PlanOptions {
  Shares shares = {};
  std::optional<Tail> tail = {};                 // where batch() named none
  std::optional<std::uint64_t> drawn_seed = {};  // for Seed::random(); drawn when not given
  std::optional<EpochSteps> epochs = {};         // none: an epoch is one pass
  std::string world = {};                        // where `shares` comes from, for `explain`
};

/// What the tails cost each time through.
struct TailCost {
  std::uint64_t dropped = 0;   // samples left out
  std::uint64_t repeated = 0;  // samples that come once more
  std::uint64_t rows = 0;      // of padded steps
  std::uint64_t padded = 0;    // of these: empty ones
  bool pads = false;
};

/// What a walk through a pass found.
struct PassCheck {
  /// The first thing that is not as it should be.
  struct Wrong {
    std::optional<SampleKey> sample = {};
    std::uint64_t step = 0;
    std::uint32_t share = 0;
    std::string what = {};
  };
  static constexpr std::size_t kNamedMax = 16;

  std::uint64_t steps = 0;
  std::uint64_t samples = 0;   // in all shares, those that a wrap repeats included
  std::uint64_t repeated = 0;  // of these, by a wrap
  std::uint64_t dropped = 0;
  std::vector<SampleKey> dropped_first = {};  // by name, in the order of their numbers
  std::optional<Wrong> wrong = {};
};

class Plan {
 public:
  explicit Plan(const Dataset& dataset, const PlanOptions& options = {});

  [[nodiscard]] const Dataset& dataset() const;
  [[nodiscard]] const Shares& shares() const;
  /// Steps of a pass.
  [[nodiscard]] Cardinality steps() const;
  /// Samples that the steps of a pass deliver, those that a wrap repeats included; nothing where
  /// only a long walk would tell.
  [[nodiscard]] std::optional<Cardinality> samples() const;
  /// The largest global batch.
  [[nodiscard]] std::uint64_t batch_samples() const;
  /// Samples of each of the `total` shares of a step (of a stream, of a full one); padded shares
  /// have empty rows besides.
  [[nodiscard]] std::vector<std::uint64_t> cut(std::uint64_t step) const;
  /// Bytes of one batch here, or nothing where only running shows it.
  [[nodiscard]] std::optional<std::uint64_t> batch_bytes() const;
  [[nodiscard]] Digests digests() const;
  [[nodiscard]] TailCost tail_cost() const;
  /// Walks through pass `pass` without data and finds the first sample that comes in no share, or
  /// too often: exactly once, where no node repeats or leaves out samples. Takes a bit of memory a
  /// sample. Throws ConfigError for streams and where there is no end.
  [[nodiscard]] PassCheck check(std::uint64_t pass = 0) const;
  /// The plan in words, for people.
  [[nodiscard]] std::string explain() const;

  /// As JSON: nodes by word and arguments, user functions and arrays by their names.
  [[nodiscard]] std::string serialize() const;
  /// The plan of `text`; functions and arrays are taken by name from the datasets in `having`.
  static Plan parse(const std::string& text, const std::vector<Dataset>& having = {});

  [[nodiscard]] const std::shared_ptr<const PlanData>& data() const { return data_; }

 private:
  std::shared_ptr<const PlanData> data_;
};

/// A contiguous piece of one global step: rows [first, first + count) of step `step` in `pass`. The
/// empty rows of a padded step come last here.
struct BlockId {
  std::uint64_t pass = 0;
  std::uint64_t step = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// Computes one block, alone, in the calling thread. Throws SampleError.
Batch run_block(const Plan& plan, const BlockId& block);

}  // namespace penstock
