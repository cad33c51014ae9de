#pragma once
// The options of the verbs of a dataset; those of files are in folder.h, of loaders in options.h.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <penstock/packing.h>
#include <penstock/padding.h>
#include <penstock/sample.h>
#include <penstock/spec.h>
#include <penstock/tail.h>

namespace penstock {

/// A fixed seed, or a request for one that is drawn when the loader is created and saved in states.
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
  /// Permutes each window of this many consecutive elements separately; required for streams.
  std::optional<std::uint64_t> window = {};
  /// For storage that hates random reads: permutes blocks of this many consecutive samples, and
  /// then the samples of each `window` of them, rounded up to whole blocks; 16 blocks by default. A
  /// larger window is more random, and reads from more places at a time.
  std::optional<std::uint64_t> blocks = {};
};
struct MapOptions {
  std::string name = {};                 // in plans, errors and digests
  std::uint64_t seed = 0;                // for functions that take an Rng
  std::optional<ElementSpec> spec = {};  // of the result, if the function's type does not say
  bool row_wise = false;  // after batch: each output row depends only on the same input row
};
struct ScanOptions {
  std::string name = {};                 // in plans, errors and digests
  std::optional<ElementSpec> spec = {};  // of the outputs
};
struct FilterOptions {
  std::string name = {};
  std::uint64_t seed = 0;  // for predicates that take an Rng
  bool mask = false;       // rejected rows stay, with valid = 0, so that the data remains indexed
};
struct FlatMapOptions {
  std::string name = {};
  std::optional<ElementSpec> spec = {};  // of the elements of the returned datasets
};
struct InterleaveOptions {
  std::uint64_t cycle = 16;  // datasets open at the same time
  std::uint64_t block = 1;   // elements taken from one dataset before the next
  std::string name = {};
  std::optional<ElementSpec> spec = {};
};
struct BatchOptions {
  std::optional<Tail> tail = {};
  bool drop_remainder = false;  // the same as Tail::drop
};
struct PaddedBatchOptions {
  Padding padding = {};
  std::optional<Tail> tail = {};
  bool drop_remainder = false;
};
/// For `bucket_by_length` and `batch_by_tokens`.
struct BucketOptions {
  std::string field = {};  // the field whose first size is the length
  /// Returns the length of a sample, instead of a field.
  std::function<std::int64_t(const Sample&)> length = {};
  /// Pads the rows of a step; nothing: fields stay ragged.
  std::optional<Padding> padding = Padding{};
  /// Indexed data only: pads to the longest length of the bucket instead of the longest row. The
  /// last bucket, if it has no boundary, is padded to its longest row.
  bool pad_to_boundary = false;
  std::optional<Tail> tail = {};  // of each bucket
  bool drop_remainder = false;
  /// Of a stream: when a sample has waited for this many later ones, its bucket is delivered as a
  /// short step. By default it waits until its bucket is full, or for the end.
  std::optional<std::uint64_t> window = {};
};
/// For `window`.
struct WindowOptions {
  std::optional<std::uint64_t> shift = {};  // from one window to the next; by default its size
  std::uint64_t stride = 1;                 // from one sample of a window to the next
  bool drop_remainder = true;               // leave out windows that reach beyond the end
};
struct ZipOptions {
  bool strict = false;  // throw ConfigError for inputs of different lengths
};
/// Where `cache` stands.
enum class CachePlace : std::uint8_t {
  here,
  automatic,  // below the first random op, so that every epoch draws its own numbers
};
/// What happens to rows beyond CacheOptions::bytes_max.
enum class WhenFull : std::uint8_t {
  recompute,  // they are computed in every pass
  spill,      // they go to the folder; the rows before them are in memory
};
struct CacheOptions {
  /// Of memory, or of the row files if the rows are in a folder. With several processes in one
  /// folder they may exceed it by some rows each.
  std::uint64_t bytes_max = UINT64_MAX;
  std::string folder = {};  // empty: the rows are in memory
  CachePlace place = CachePlace::here;
  WhenFull when_full = WhenFull::recompute;
};
struct SaveOptions {
  std::uint32_t files = 1;  // how many row files are written, by as many threads at most
  bool overwrite = false;   // remove the dataset that the folder has
};
struct PrefetchOptions {
  std::uint64_t steps = 0;
  std::uint64_t bytes = 0;
};
struct SourceOptions {
  std::string name = {};  // identifies a function's data in states and plans
  std::optional<ElementSpec> spec = {};
};
struct SequenceOptions {
  std::string name = {};                 // identifies it in states and plans
  std::optional<ElementSpec> spec = {};  // of one row; by default that of the first batch
  bool pure = false;                     // a difference found by `check` is an error
  bool check = true;  // request one index again at the very end, and report a difference
};
/// For `with_options`: defaults for the loaders of a dataset.
struct Options {
  std::string name = {};  // of the dataset, in error messages
  std::optional<unsigned> threads = {};
  std::optional<std::uint64_t> lookahead_bytes = {};
};

}  // namespace penstock
