#pragma once
// A dataset is a value that describes where samples come from and what happens to them. It is cheap
// to copy and starts nothing; `Loader` runs it. Names follow tf.data. A function that would make
// the description invalid throws ConfigError at once.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <penstock/error.h>
#include <penstock/function.h>
#include <penstock/spec.h>
#include <penstock/tail.h>

namespace penstock {

class Node;
class Op;
class Sequence;
namespace image {
class Chain;
}

/// How many elements a dataset has: samples, or steps once batched. For a stream it is unknown
/// until the stream has ended, after a select() until resolve().
class Cardinality {
 public:
  static Cardinality of(std::uint64_t count) { return Cardinality(Kind::counted, count); }
  static Cardinality endless() { return Cardinality(Kind::endless, 0); }
  static Cardinality unknown() { return Cardinality(Kind::unknown, 0); }
  /// Unknown until resolve() has run the predicate of a select().
  static Cardinality undecided() { return Cardinality(Kind::undecided, 0); }
  [[nodiscard]] bool is_counted() const { return kind_ == Kind::counted; }
  [[nodiscard]] bool is_endless() const { return kind_ == Kind::endless; }
  [[nodiscard]] bool is_unknown() const { return !is_counted() && !is_endless(); }
  /// Throws ConfigError when endless or unknown.
  [[nodiscard]] std::uint64_t count() const;
  /// "12", "endless" or "unknown".
  [[nodiscard]] std::string text() const;
  bool operator==(const Cardinality&) const = default;

 private:
  enum class Kind : std::uint8_t { counted, endless, unknown, undecided };
  Cardinality(Kind kind, std::uint64_t count) : kind_(kind), count_(count) {}
  Kind kind_;
  std::uint64_t count_;
};

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
};
struct MapOptions {
  std::string name = {};                 // in plans, errors and digests
  std::uint64_t seed = 0;                // for functions that take an Rng
  std::optional<ElementSpec> spec = {};  // of the result, if the function's type does not say
  bool row_wise = false;  // after batch: each output row depends only on the same input row
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
struct ZipOptions {
  bool strict = false;  // throw ConfigError for inputs of different lengths
};
struct CacheOptions {
  std::uint64_t bytes_max = UINT64_MAX;  // rows beyond this are computed in every pass
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
/// Which symbolic links below an image folder are followed, when it is listed and when a file is
/// opened.
enum class FollowLinks : std::uint8_t {
  never,
  inside,  // those that stay below the folder
  anywhere,
};
struct FolderOptions {
  /// Case-insensitive; default: jpg jpeg png webp bmp ppm pgm pbm npy.
  std::vector<std::string> extensions = {};
  FollowLinks follow_links = FollowLinks::inside;
  bool labels = true;      // false: no classes; images anywhere below, without a label
  bool with_path = false;  // adds the field path, relative to the folder
  std::string index = {};  // a file that FolderIndex::save wrote; the folder is then not listed
  std::uint64_t bytes_max = std::uint64_t{1} << 30;  // larger files fail without being read
};
struct ListOptions {
  bool hidden = false;  // wildcards also match names that begin with a dot
};
struct Options {
  std::string name = {};
  std::optional<unsigned> threads = {};
  std::optional<std::uint64_t> lookahead_bytes = {};
};

/// Hashes of a dataset. A state fits only a dataset with the same `order`; a difference in `values`
/// (functions, ops) is reported.
struct Digests {
  std::string order;
  std::string values;
  bool operator==(const Digests&) const = default;
};

/// An op of the catalogue with its arguments, as returned by `cast(Dtype::f32)`. Immutable.
class OpCall {
 public:
  explicit OpCall(std::shared_ptr<const Op> op) : op_(std::move(op)) {}
  [[nodiscard]] const std::shared_ptr<const Op>& op() const { return op_; }

 private:
  std::shared_ptr<const Op> op_;
};

/// Converts the field at `path`: floats are truncated to integers, integers wrap around.
OpCall cast(Dtype dtype, std::string path = "");

/// Replaces the field `path`, the path of a file, by the bytes of that file. A sample whose file
/// has more than `bytes_max` bytes fails without reading it.
OpCall read_file(std::string path = "", std::uint64_t bytes_max = std::uint64_t{1} << 30);

struct FolderListing;

/// The images of a folder: names, sizes and classes, found without reading the images. Files are in
/// byte order of their relative names. Immutable and thread-safe; copies share the data.
class FolderIndex {
 public:
  /// Loads what `save` wrote, for the same folder on this or another machine. Throws ConfigError
  /// for any other file.
  static FolderIndex load(const std::string& file, const std::string& root);
  /// Writes names and sizes, without absolute paths. The file appears complete or not at all.
  void save(const std::string& file) const;
  /// Lists the folder again. Throws ConfigError naming the first file that is missing, new, or of a
  /// different size. Without this check, reading such a file fails.
  void check() const;

  [[nodiscard]] const std::string& root() const;
  [[nodiscard]] std::uint64_t files() const;
  [[nodiscard]] std::uint64_t bytes() const;
  /// The path of image number `file`, relative to the root.
  [[nodiscard]] std::string name(std::uint64_t file) const;
  /// Sorted; label i is class_names()[i].
  [[nodiscard]] const std::vector<std::string>& class_names() const;
  /// Number of images of each class.
  [[nodiscard]] std::vector<std::uint64_t> class_files() const;

  /// Entries of the folder that are not among the images.
  struct LeftOut {
    std::string reason;
    std::uint64_t count = 0;
    std::vector<std::string> first;  // at most five names, printable
  };
  [[nodiscard]] const std::vector<LeftOut>& left_out() const;
  /// "2 empty (cat/a.png, cat/b.png), 1 hidden (.thumbs)", or "" if nothing was left out.
  [[nodiscard]] std::string left_out_text() const;

  explicit FolderIndex(std::shared_ptr<const FolderListing> listing)
      : listing_(std::move(listing)) {}
  [[nodiscard]] const std::shared_ptr<const FolderListing>& listing() const { return listing_; }

 private:
  std::shared_ptr<const FolderListing> listing_;
};

/// Lists a folder of images: each folder directly in `root` that contains images, at any depth, is
/// a class. Hidden and empty files, other extensions and anything that cannot be an image are left
/// out and counted. Throws ConfigError if no image is found, or if there are images but no class
/// folders. Blocks until the folder is listed.
FolderIndex list_images(const std::string& root, const FolderOptions& options = {});

/// The description of a pipeline: a source, and the verbs applied to it.
///
/// Immutable: every verb returns a new dataset and leaves this one unchanged. All functions are
/// const and thread-safe, and copies may be used in any thread at the same time. Only `sample` and
/// `resolve` call users' functions on data; only the functions under "Files" touch the file system;
/// nothing else blocks.
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
  /// `window`, of each window. After `batch` it shuffles steps.
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
  [[nodiscard]] Dataset batch(std::int64_t size, const BatchOptions& options = {}) const;
  /// The rows of batches, or of elements with several rows in their first dimension.
  [[nodiscard]] Dataset unbatch() const;

  // Running
  /// Keeps the values of the first pass in memory, for all copies of this dataset and all their
  /// loaders.
  [[nodiscard]] Dataset cache(const CacheOptions& options = {}) const;
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
  /// Runs the predicate of each select() for all samples, on the pool's threads, and returns the
  /// dataset with the result; all copies of this dataset share it, so that the predicates run only
  /// once. Blocks until they are done. Throws SampleError if a predicate fails, and CancelledError
  /// if it is called inside a function of a loader that is stopped. `while_waiting` is called about
  /// every 50 ms meanwhile; an exception from it cancels the search and is rethrown. A no-op
  /// without select() or split().
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
