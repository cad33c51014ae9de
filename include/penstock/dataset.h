#pragma once
// A dataset is a value: the description of where samples come from and what happens to them. It is
// cheap to copy and starts nothing. `Loader` runs it. Names follow tf.data; what is wrong with a
// description is a ConfigError when the wrong part is added.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <penstock/error.h>
#include <penstock/function.h>
#include <penstock/spec.h>

namespace penstock {

class Node;
class Op;

/// How many elements a dataset has: samples, or steps once batched.
class Cardinality {
 public:
  static Cardinality of(std::uint64_t count) { return Cardinality(count); }
  static Cardinality endless() { return Cardinality(std::nullopt); }
  [[nodiscard]] bool is_endless() const { return !count_; }
  /// Throws ConfigError when endless.
  [[nodiscard]] std::uint64_t count() const;
  bool operator==(const Cardinality&) const = default;

 private:
  explicit Cardinality(std::optional<std::uint64_t> count) : count_(count) {}
  std::optional<std::uint64_t> count_;
};

/// What happens to the last samples when the batch size does not divide their number.
enum class Tail : std::uint8_t {
  short_,  // the last batch is short
  drop,    // an incomplete batch is left out
};

/// A seed, or the wish for one that is drawn when the loader is made and kept in its state.
struct Seed {
  std::uint64_t value = 0;
  bool drawn = false;
  Seed() = default;
  Seed(std::uint64_t seed) : value(seed) {}  // NOLINT: a number is a seed
  static Seed random() {
    Seed seed;
    seed.drawn = true;
    return seed;
  }
};

struct ShuffleOptions {
  Seed seed = {};
  bool reshuffle_each_epoch = true;
};
struct MapOptions {
  std::string name = {};                 // in plans, errors and digests
  std::uint64_t seed = 0;                // for functions that take an Rng
  std::optional<ElementSpec> spec = {};  // of the result, where the function's type does not tell
  bool row_wise = false;  // after batch: each row depends on itself alone, any block may be asked
};
struct BatchOptions {
  std::optional<Tail> tail = {};
  bool drop_remainder = false;  // the same as Tail::drop
};
struct ZipOptions {
  bool strict = false;  // refuse inputs of different lengths
};
struct CacheOptions {
  std::uint64_t bytes_max = UINT64_MAX;  // rows beyond are computed again
};
struct PrefetchOptions {
  std::uint64_t steps = 0;
  std::uint64_t bytes = 0;
};
struct SourceOptions {
  std::string name = {};  // identity of a function's data in states and plans
  std::optional<ElementSpec> spec = {};
};
struct Options {
  std::string name = {};
  std::optional<unsigned> threads = {};
  std::optional<std::uint64_t> lookahead_bytes = {};
};

/// What must agree before a state fits a dataset (order), and what should (values).
struct Digests {
  std::string order;
  std::string values;
  bool operator==(const Digests&) const = default;
};

/// An op of the catalogue with its arguments, as `cast(Dtype::f32)` makes it.
class OpCall {
 public:
  explicit OpCall(std::shared_ptr<const Op> op) : op_(std::move(op)) {}
  [[nodiscard]] const std::shared_ptr<const Op>& op() const { return op_; }

 private:
  std::shared_ptr<const Op> op_;
};

/// Converts the field at `path`; floats to integers truncate, integers wrap.
OpCall cast(Dtype dtype, std::string path = "");

class Dataset {
 public:
  // Sources
  static Dataset range(std::int64_t stop) { return range(0, stop); }
  static Dataset range(std::int64_t start, std::int64_t stop, std::int64_t step = 1);
  /// One element.
  static Dataset from_tensors(Sample sample, const SourceOptions& options = {});
  /// The rows of the tensors' first dimension, which all must share.
  static Dataset from_tensor_slices(Sample tensors, const SourceOptions& options = {});
  /// Sample i is `fn(i)`: a number, or a Sample.
  template <typename F>
  static Dataset from_index(std::uint64_t size, F fn, const SourceOptions& options = {}) {
    return from_index_fn(size, detail::make_index_fn(std::move(fn)), options);
  }

  // Sample to sample
  template <typename F>
  [[nodiscard]] Dataset map(F fn, const MapOptions& options = {}) const {
    if constexpr (detail::kTakesBlock<F>) {
      return map_block(BlockFn{std::move(fn)}, options);
    } else if constexpr (detail::kTakesSample<F>) {
      return map_sample(detail::make_sample_fn(std::move(fn)), options);
    } else {
      return map_column(detail::make_column_fn(std::move(fn)), options);
    }
  }
  [[nodiscard]] Dataset map(const OpCall& call) const;

  // Order and number
  [[nodiscard]] Dataset shuffle(const ShuffleOptions& options = {}) const;
  /// -1: for ever.
  [[nodiscard]] Dataset repeat(std::int64_t count = -1) const;
  /// -1: all.
  [[nodiscard]] Dataset take(std::int64_t count) const;
  /// -1: all are skipped.
  [[nodiscard]] Dataset skip(std::int64_t count) const;
  /// Elements index, index + count, ... Part of the dataset; replicas never use it.
  [[nodiscard]] Dataset shard(std::int64_t count, std::int64_t index) const;
  [[nodiscard]] Dataset concatenate(const Dataset& other) const;
  /// Tuples of one sample each; stops at the shortest.
  static Dataset zip(const std::vector<Dataset>& parts, const ZipOptions& options = {});
  /// Tuples (number from 0, sample).
  [[nodiscard]] Dataset enumerate() const;

  // Batches: `size` is the global batch, whatever the number of replicas
  [[nodiscard]] Dataset batch(std::int64_t size, const BatchOptions& options = {}) const;
  [[nodiscard]] Dataset unbatch() const;

  // Running
  /// Keeps in memory what the first pass gave; shared by all copies of this dataset.
  [[nodiscard]] Dataset cache(const CacheOptions& options = {}) const;
  /// A wish for look-ahead; what a loader needs it finds by itself.
  [[nodiscard]] Dataset prefetch(const PrefetchOptions& options) const;
  [[nodiscard]] Dataset with_options(const Options& options) const;
  template <typename F>
  [[nodiscard]] Dataset apply(F&& transform) const {
    return std::forward<F>(transform)(*this);
  }

  // Looking
  [[nodiscard]] Cardinality cardinality() const;
  [[nodiscard]] const ElementSpec& element_spec() const;
  [[nodiscard]] bool batched() const;
  [[nodiscard]] Digests digests() const;
  /// One line per node.
  [[nodiscard]] std::string describe() const;
  /// Computes the sample at position `number` of the first pass, alone.
  [[nodiscard]] Sample sample(std::uint64_t number) const;

  [[nodiscard]] const std::shared_ptr<const Node>& node() const { return node_; }
  explicit Dataset(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

 private:
  static Dataset from_index_fn(std::uint64_t size, IndexFn fn, const SourceOptions& options);
  [[nodiscard]] Dataset map_column(ColumnFn fn, const MapOptions& options) const;
  [[nodiscard]] Dataset map_sample(SampleFn fn, const MapOptions& options) const;
  [[nodiscard]] Dataset map_block(BlockFn fn, const MapOptions& options) const;

  std::shared_ptr<const Node> node_;
};

}  // namespace penstock
