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

struct PlanOptions {
  Shares shares = {};
  std::optional<Tail> tail = {};                 // where batch() named none
  std::optional<std::uint64_t> drawn_seed = {};  // for Seed::random(); drawn when not given
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
  /// The plan in words, for people.
  [[nodiscard]] std::string explain() const;

  /// As JSON: nodes by word and arguments, user functions and arrays by their names.
  [[nodiscard]] std::string serialise() const;
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
