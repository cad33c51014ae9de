#pragma once
// User functions in the forms that `map` and `from_index` accept, each behind one type:
//   [](std::int64_t x) { return x * 2 + 1; }          typed: a loop over columns, compiled here
//   [](const Sample& s) { return Sample(...); }        one sample to one sample
//   [](const Block& in, Block& out) { ... }            a block at a time
// Predicates have the first two forms and return bool. Generators are in generator.h.
// The first two forms may take an `Rng&` as their last parameter: a generator keyed by the sample.
// Functions are called from several threads at the same time, so they must be callable as const.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <penstock/block.h>

namespace penstock {

/// Returns the generator for a row of the current block.
using RowRng = std::function<Rng(std::size_t row)>;

/// A typed function as a loop over columns.
struct ColumnFn {
  struct Call {
    std::span<const std::byte* const> inputs;
    std::span<std::byte* const> outputs;
    std::size_t rows = 0;
    std::size_t row_values = 1;
    const RowRng* rng = nullptr;
    std::size_t failed_row = 0;  // set if the function threw
  };
  std::vector<Dtype> inputs;
  std::vector<Dtype> outputs;
  bool tuple = false;
  bool random = false;
  std::function<void(Call&)> run;
  /// "(i64, f32) -> (i64)"
  [[nodiscard]] std::string signature() const;
};

/// A function of whole samples. Its argument's tensors are valid during the call; `kept()` returns
/// one that stays valid.
struct SampleFn {
  bool random = false;
  std::function<Sample(const Sample&, Rng&)> run;
};

/// Of a state and an element; returns the next state and an output.
using ScanFn = std::function<std::pair<Sample, Sample>(const Sample& state, const Sample& element)>;

/// A function of blocks. Needs a declared spec; dense fields only.
struct BlockFn {
  std::function<void(const Block& in, Block& out)> run;
};

/// A function of the index of a sample.
struct IndexFn {
  ElementSpec spec;  // unknown if it returns a Sample
  std::function<Sample(std::uint64_t)> run;
};

}  // namespace penstock
