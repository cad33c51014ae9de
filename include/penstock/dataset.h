#pragma once
// A dataset is a value that describes where samples come from and what happens to them. It is cheap
// to copy and starts nothing; `Loader` runs it. Names follow tf.data. A function that would make
// the description invalid throws ConfigError at once.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <penstock/cardinality.h>
#include <penstock/detail/function.h>
#include <penstock/detail/generator.h>
#include <penstock/digests.h>
#include <penstock/error.h>
#include <penstock/folder.h>
#include <penstock/function.h>
#include <penstock/generator.h>
#include <penstock/op.h>
#include <penstock/spec.h>
#include <penstock/tail.h>
#include <penstock/verb_options.h>

namespace penstock {

class Node;
class Sequence;
namespace image {
class Chain;
}

/// The description of a pipeline: a source, and the verbs applied to it.
///
/// Immutable: every verb returns a new dataset and leaves this one unchanged. All functions are
/// const and thread-safe, and copies may be used in any thread at the same time. Only `sample`,
/// `resolve` and `save` call users' functions on data; only these, the functions under "Files" and
/// `cache` in a folder touch the file system; nothing else blocks.
///
/// Users' functions are called later, by loaders, from several threads at the same time: they must
/// be thread-safe, and should depend only on their arguments. An exception in one fails the sample
/// (see OnError). References that they capture must stay valid as long as a dataset or loader that
/// uses them.
///
/// Every verb throws ConfigError if it cannot follow the verbs before it or an argument is out of
/// range.
class Dataset {
 public:
  // Sources
  /// The numbers start, start + step, ... below `stop` (above it if `step` is negative), as int64.
  static Dataset range(std::int64_t stop) { return range(0, stop); }
  static Dataset range(std::int64_t start, std::int64_t stop, std::int64_t step = 1);
  /// One element: `sample` itself.
  static Dataset from_tensors(Sample sample, const SourceOptions& options = {});
  /// The rows of the tensors, which must all have the same first dimension. The tensors are read in
  /// place: do not change them while a loader runs.
  static Dataset from_tensor_slices(Sample tensors, const SourceOptions& options = {});
  /// Rows of different lengths: sample i is values[offsets[i] .. offsets[i + 1]) along the first
  /// dimension. `offsets` are i64 in one dimension, ascending. Both are read in place. Throws
  /// ConfigError for offsets that are not within the values.
  static Dataset from_ragged(Tensor values, Tensor offsets, const SourceOptions& options = {});
  /// Windows of an array: sample i is values[i * stride .. i * stride + length) along the first
  /// dimension, which is read in place; stride 0 means `length`.
  static Dataset from_windows(Tensor values, std::int64_t length, std::int64_t stride = 0,
                              const SourceOptions& options = {});
  /// Sample i is `fn(i)`: a number, or a Sample. `fn` must depend on i alone.
  template <typename F>
  static Dataset from_index(std::uint64_t size, F fn, const SourceOptions& options = {}) {
    return from_index_fn(size, detail::make_index_fn(std::move(fn)), options);
  }

  /// A stream. `factory()` returns a generator for each traversal of the data: a callable that
  /// returns an optional element (a number, a tuple of numbers, a struct with `fields()`, or a
  /// Sample), and nullopt at the end. A generator is called by one thread at a time. One with
  /// `std::string save()` and `restore(const std::string&)` resumes where a state was saved; any
  /// other is read again from its start.
  template <typename F>
  static Dataset from_generator(F factory, const SourceOptions& options = {}) {
    return from_generator_fn(detail::make_generator_fn(std::move(factory)), options);
  }

  /// The batches of a Sequence: global batches, cut into shares like any other. See sequence.h for
  /// which threads call it.
  static Dataset from_sequence(std::shared_ptr<Sequence> sequence,
                               const SequenceOptions& options = {});

  // Files. These functions list files, and block while they do; a file is read when a loader needs
  // it. Only relative names, sizes and the number of files are part of the digests.
  /// {image: the encoded file, label: i64}. Lists `root` (see `list_images`) and reports the
  /// entries that were left out.
  static Dataset image_folder(const std::string& root, const FolderOptions& options = {});
  /// The same for a folder that was listed before.
  static Dataset image_folder(const FolderIndex& index, bool with_path = false);
  /// {image: the encoded file, label: i64}, or {image} if `labels` is empty.
  static Dataset from_paths(const std::vector<std::string>& paths,
                            const std::vector<std::int64_t>& labels = {});
  /// The paths of the files that match `pattern`, sorted: `*`, `?` and `[a-z]` within a name, `**`
  /// for any folders. Throws ConfigError if there are none.
  static Dataset list_files(const std::string& pattern, const ListOptions& options = {});

  /// Windows of `length` tokens of files that contain nothing but tokens, which are mapped, not
  /// read; a window does not cross files. `pattern` is a path, or as for `list_files`.
  static Dataset tokens(const std::string& pattern, Dtype dtype, std::int64_t length,
                        std::int64_t stride = 0);
  /// The documents of `prefix`.bin, as `prefix`.idx of Megatron lists them; both are mapped.
  static Dataset from_megatron(const std::string& prefix);
  /// The samples that `save` wrote, or those of a complete `cache`, with their spec. Throws
  /// ConfigError if `folder` has none, or not all of them. A sample whose bytes are damaged fails.
  static Dataset load(const std::string& folder);

  // Sample to sample
  /// `fn` of every sample; after `batch`, of every whole batch unless `row_wise`. `fn` takes
  /// numbers (one per field), a Sample or a Block, and optionally an Rng&, which is keyed by sample
  /// and epoch.
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
  /// A chain of image ops, run in one pass over the pixels.
  [[nodiscard]] Dataset map(const image::Chain& chain) const;

  /// Calls `fn` for the elements in order, by one thread at a time, each with the state that the
  /// call before returned; the outputs are the elements of the result, which is a stream. Every
  /// pass and every round of a repeat starts from `initial`. A state keeps the structure and dtypes
  /// of `initial` and has at most 16 KB: a loader's state contains it. An element that fails leaves
  /// the state unchanged. Throws ConfigError after `batch`.
  [[nodiscard]] Dataset scan(Sample initial, ScanFn fn, const ScanOptions& options = {}) const;

  // Predicates: typed, [](float x, std::int32_t label) { return x > 0; }, or of a Sample
  /// Keeps the samples for which `predicate` returns true. The result is a stream, unless `mask`.
  template <typename F>
  [[nodiscard]] Dataset filter(F predicate, const FilterOptions& options = {}) const {
    return filter_op(predicate_op(std::move(predicate), options.name), options);
  }
  /// Ends before the first element for which `predicate` returns false. The result is a stream.
  template <typename F>
  [[nodiscard]] Dataset take_while(F predicate, const FilterOptions& options = {}) const {
    return take_while_op(predicate_op(std::move(predicate), options.name), options);
  }
  /// Keeps the samples for which `predicate` returns true. The predicate runs once for each sample,
  /// in `resolve` or when a loader is created; the data stays indexed.
  template <typename F>
  [[nodiscard]] Dataset select(F predicate, const FilterOptions& options = {}) const {
    return select_op(predicate_op(std::move(predicate), options.name), options);
  }
  /// Splits the samples into two datasets without overlap: round(fraction * N) samples, chosen by
  /// `seed`, and the rest, each in the dataset's order. Reads no data. Throws ConfigError if a part
  /// would be empty, and after repeat().
  [[nodiscard]] std::pair<Dataset, Dataset> split(double fraction, std::uint64_t seed = 0) const;

  // One sample to a dataset, which `fn(const Sample&)` or `fn(number)` returns
  /// The elements of these datasets, one dataset after the other. The result is a stream.
  template <typename F>
  [[nodiscard]] Dataset flat_map(F fn, const FlatMapOptions& options = {}) const {
    return expand(detail::make_expand_fn<Dataset>(std::move(fn)),
                  {1, UINT64_MAX, options.name, options.spec}, "flat_map");
  }
  /// Alternates between the datasets of `cycle` elements, `block` elements at a time. The result is
  /// a stream.
  template <typename F>
  [[nodiscard]] Dataset interleave(F fn, const InterleaveOptions& options = {}) const {
    return expand(detail::make_expand_fn<Dataset>(std::move(fn)), options, "interleave");
  }

  // Order and number. After `batch` these count whole steps.
  /// A permutation of the whole dataset, a different one in each epoch, in O(1) memory; with
  /// `window`, of each window; with `blocks`, of blocks of neighbors, and then of windows of them.
  /// After `batch` it shuffles steps.
  [[nodiscard]] Dataset shuffle(const ShuffleOptions& options = {}) const;
  /// The elements `count` times; -1: endlessly. Each round has its own shuffle and random numbers.
  [[nodiscard]] Dataset repeat(std::int64_t count = -1) const;
  /// The first `count` elements; -1: all.
  [[nodiscard]] Dataset take(std::int64_t count) const;
  /// All but the first `count` elements; -1: skips all.
  [[nodiscard]] Dataset skip(std::int64_t count) const;
  /// Elements index, index + count, ... A property of the data: replicas get their shares from the
  /// loader, not from this.
  [[nodiscard]] Dataset shard(std::int64_t count, std::int64_t index) const;
  /// The elements of this dataset, then those of `other`, which must have the same spec.
  [[nodiscard]] Dataset concatenate(const Dataset& other) const;
  /// Tuples of one sample of each part; ends with the shortest.
  static Dataset zip(const std::vector<Dataset>& parts, const ZipOptions& options = {});
  /// Tuples (number from 0, sample).
  [[nodiscard]] Dataset enumerate() const;

  // Batches
  /// Groups `size` samples into a step. `size` is the global batch, for any number of replicas.
  /// Fields whose rows differ in size are ragged in the batch.
  [[nodiscard]] Dataset batch(std::int64_t size, const BatchOptions& options = {}) const;
  /// Like `batch`, with the rows of a field padded to one size: that of the longest row of the
  /// share, or the size that `options.padding` names. Batch::lengths has the lengths before
  /// padding. A row that is longer than the named size fails its step. `unbatch` returns rows as
  /// they were.
  [[nodiscard]] Dataset padded_batch(std::int64_t size,
                                     const PaddedBatchOptions& options = {}) const;
  /// Batches of samples of similar lengths. Bucket i has the lengths from boundaries[i - 1] to
  /// below boundaries[i], in steps of batch_sizes[i] samples; the last bucket has the longer ones,
  /// so there is one size more than boundaries. Every sample comes once; only the last step of a
  /// bucket is short. After a shuffle() of the whole dataset, samples are shuffled within their
  /// buckets, and the steps of all buckets among each other, both by its seed; otherwise the
  /// buckets follow each other. The lengths are counted once, in `resolve` or when a loader is
  /// created. A step of a stream is delivered when its bucket is full, and the rest at the end.
  /// Throws ConfigError for boundaries that do not ascend.
  [[nodiscard]] Dataset bucket_by_length(const std::vector<std::int64_t>& boundaries,
                                         const std::vector<std::int64_t>& batch_sizes,
                                         const BucketOptions& options = {}) const;
  /// The same with as many samples in a step as fit into `max_tokens`, padding included. Buckets
  /// are about a quarter wider than their shortest sample, or have the boundaries passed. A sample
  /// that is longer than the last boundary, or than `max_tokens`, throws ConfigError when the
  /// lengths are counted.
  [[nodiscard]] Dataset batch_by_tokens(std::int64_t max_tokens, const BucketOptions& options = {},
                                        std::vector<std::int64_t> boundaries = {}) const;
  /// Documents packed into rows of `length` tokens: {tokens: i32, labels: i64, positions: i32,
  /// document: i32}. A label is the next token of the same document, or -100 if there is none, if
  /// the mask says so, and for padding. `positions` count from 0 in each document of a row;
  /// `document` numbers the documents of a row, -1 for padding. Documents are packed in blocks of
  /// 4096, so rows depend on the lengths, the seed and the epoch alone; of a stream, only the last
  /// row of a block may be short. After a shuffle() of the whole dataset, documents are shuffled in
  /// blocks, and the rows as a whole, both by its seed. Lengths are counted like those of buckets.
  /// A block of a stream ends early when it fills 256 rows.
  [[nodiscard]] Dataset pack(std::int64_t length, const PackOptions& options = {}) const;
  /// Windows of `size` consecutive samples, as one sample: each field has a new first dimension.
  /// Indexed data only. Fields must have fixed sizes.
  [[nodiscard]] Dataset window(std::uint64_t size, const WindowOptions& options = {}) const;
  /// The rows of batches, or of elements with several rows in their first dimension.
  [[nodiscard]] Dataset unbatch() const;
  /// Batches of another size: `unbatch`, then `batch`. Rows keep their order.
  [[nodiscard]] Dataset rebatch(std::int64_t size, const BatchOptions& options = {}) const;

  // Running
  /// Keeps the values of the first pass, for all copies of this dataset and all their loaders: in
  /// memory, or in a folder, where other processes and later runs find them. Values that are
  /// stored are neither read nor computed again; a first pass that ends early leaves what it has.
  ///
  /// A folder belongs to one dataset, which is identified by its digests; for any other one this
  /// function, or the loader, throws ConfigError. The digests know functions by name only: after
  /// a function was changed, delete the folder or use another one. Any number of processes may use
  /// a folder at the same time, and be killed. Rows are checked when they are read, and damaged
  /// rows computed again. If a folder cannot be written to while a loader runs, that is reported
  /// once, and rows are computed. Throws ConfigError if it cannot be created.
  ///
  /// The cache of a stream is indexed data: the stream is read once to its end, in `resolve` or
  /// when a loader is created, and its elements are numbered. If the folder has all of them, the
  /// number of elements is known at once, and the stream is not read. A build that was killed
  /// starts again. An element that fails ends it with a SampleError.
  [[nodiscard]] Dataset cache(const CacheOptions& options = {}) const;
  /// `cache` in a folder: the first use writes the samples, later ones read them.
  [[nodiscard]] Dataset snapshot(const std::string& folder) const;
  /// Computes all samples, as in the first pass, and writes them to `folder`, from which `load`
  /// makes a dataset. Blocks until they are on the disk. The folder is complete or not there: a
  /// save that was killed goes on where it was, or starts again for a stream. Throws ConfigError
  /// for batches and endless data, and if the folder has a saved dataset already; SampleError if a
  /// sample fails; IoError if the folder cannot be written to. `while_waiting` is as for `resolve`.
  void save(const std::string& folder, const SaveOptions& options = {},
            const std::function<void()>& while_waiting = {}) const;
  /// Asks for at least this many steps or bytes to be prepared in advance. Rarely needed: a loader
  /// tunes this itself.
  [[nodiscard]] Dataset prefetch(const PrefetchOptions& options) const;
  /// Defaults for loaders of this dataset, and a name for error messages.
  [[nodiscard]] Dataset with_options(const Options& options) const;
  /// `transform(*this)`, for chaining.
  template <typename F>
  [[nodiscard]] Dataset apply(F&& transform) const {
    return std::forward<F>(transform)(*this);
  }

  // Inspection
  /// Runs the predicate of each select() for all samples, on the pool's threads, and reads each
  /// stream that is cached, and returns the dataset with the result; all copies of this dataset
  /// share it, so that the predicates run only once. Blocks until they are done. Throws SampleError
  /// if a predicate fails, and CancelledError if it is called inside a function of a loader that is
  /// stopped. `while_waiting` is called about every 50 ms meanwhile; an exception from it cancels
  /// the search and is rethrown. A no-op without select(), split() or the cache of a stream.
  [[nodiscard]] Dataset resolve(const std::function<void()>& while_waiting = {}) const;
  /// Number of samples, or of steps once batched.
  [[nodiscard]] Cardinality cardinality() const;
  /// Fields, dtypes and shapes of one element; `known` is false if only running would show them.
  [[nodiscard]] const ElementSpec& element_spec() const;
  /// True after `batch` or `from_sequence`.
  [[nodiscard]] bool batched() const;
  /// True if the data is a stream: its elements can only be read in order.
  [[nodiscard]] bool streamed() const;
  [[nodiscard]] Digests digests() const;
  /// The classes of the image folder that this dataset begins with; empty for any other source.
  [[nodiscard]] std::vector<std::string> class_names() const;
  /// The pipeline as text, one line per node.
  [[nodiscard]] std::string describe() const;
  /// Computes the sample at position `number` of the first pass in the calling thread, after
  /// `resolve` if needed. A stream is read from its start. Throws SampleError if the sample fails,
  /// ConfigError if there is no such sample or steps are shuffled or sharded.
  [[nodiscard]] Sample sample(std::uint64_t number) const;

  [[nodiscard]] const std::shared_ptr<const Node>& node() const { return node_; }
  explicit Dataset(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

 private:
  static Dataset from_index_fn(std::uint64_t size, IndexFn fn, const SourceOptions& options);
  static Dataset from_generator_fn(GeneratorFn fn, const SourceOptions& options);
  template <typename F>
  static std::shared_ptr<const Op> predicate_op(F predicate, const std::string& name) {
    if constexpr (detail::kIsSamplePredicate<F>) {
      return sample_predicate(detail::make_sample_predicate(std::move(predicate)), name);
    } else {
      return column_predicate(detail::make_column_fn(std::move(predicate)), name);
    }
  }
  static std::shared_ptr<const Op> sample_predicate(SampleFn fn, const std::string& name);
  static std::shared_ptr<const Op> column_predicate(ColumnFn fn, const std::string& name);
  [[nodiscard]] Dataset filter_op(std::shared_ptr<const Op> op, const FilterOptions& options) const;
  [[nodiscard]] Dataset take_while_op(std::shared_ptr<const Op> op,
                                      const FilterOptions& options) const;
  [[nodiscard]] Dataset select_op(std::shared_ptr<const Op> op, const FilterOptions& options) const;
  [[nodiscard]] Dataset expand(std::function<Dataset(const Sample&)> fn,
                               const InterleaveOptions& options, const char* word) const;
  [[nodiscard]] Dataset map_column(ColumnFn fn, const MapOptions& options) const;
  [[nodiscard]] Dataset map_sample(SampleFn fn, const MapOptions& options) const;
  [[nodiscard]] Dataset map_block(BlockFn fn, const MapOptions& options) const;

  std::shared_ptr<const Node> node_;
};

}  // namespace penstock
