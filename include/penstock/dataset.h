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
class Sequence;
namespace image {
class Chain;
}

/// How many elements a dataset has: samples, or steps once batched. Of a stream only running shows
/// it, and of a select() only resolve().
class Cardinality {
 public:
  static Cardinality of(std::uint64_t count) { return Cardinality(Kind::counted, count); }
  static Cardinality endless() { return Cardinality(Kind::endless, 0); }
  static Cardinality unknown() { return Cardinality(Kind::unknown, 0); }
  /// Unknown until resolve() has run what a select() looks at.
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

/// What happens to the last samples when the batch size does not divide their number.
enum class Tail : std::uint8_t {
  short_,  // the last batch is short
  drop,    // an incomplete batch is left out
  even,    // as many steps as with short_, their sizes differ by one at most
  pad,     // every share has the same number of rows in every step; empty ones are marked
  wrap,    // the last batch is filled with samples from the start of the order
  strict,  // a plan with a short batch, or with shares of different sizes, is refused
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
  /// Permutes windows of so many consecutive elements, each in itself; a stream needs one.
  std::optional<std::uint64_t> window = {};
};
struct MapOptions {
  std::string name = {};                 // in plans, errors and digests
  std::uint64_t seed = 0;                // for functions that take an Rng
  std::optional<ElementSpec> spec = {};  // of the result, where the function's type does not tell
  bool row_wise = false;  // after batch: each row depends on itself alone, any block may be asked
};
struct FilterOptions {
  std::string name = {};
  std::uint64_t seed = 0;  // for predicates that take an Rng
  bool mask = false;  // rows that do not pass keep their place with valid = 0: data stays indexed
};
struct FlatMapOptions {
  std::string name = {};
  std::optional<ElementSpec> spec = {};  // of the elements of the datasets it returns
};
struct InterleaveOptions {
  std::uint64_t cycle = 16;  // datasets that are open at once
  std::uint64_t block = 1;   // elements taken from one before the next has its turn
  std::string name = {};
  std::optional<ElementSpec> spec = {};
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
struct SequenceOptions {
  std::string name = {};                 // its identity in states and plans
  std::optional<ElementSpec> spec = {};  // of one row; the first batch tells otherwise
  bool pure = false;  // an index that is answered differently when asked again is an error
  bool check = true;  // one index is asked again at the very end, and a difference is told
};
/// Which symbolic links below an image folder are looked through, when it is listed and again when
/// a file is opened.
enum class FollowLinks : std::uint8_t {
  never,
  inside,  // those that stay below the folder
  anywhere,
};
struct FolderOptions {
  std::vector<std::string> extensions = {};  // in any case; jpg jpeg png webp bmp ppm pgm pbm npy
  FollowLinks follow_links = FollowLinks::inside;
  bool labels = true;      // false: there are no classes; images anywhere below, without a label
  bool with_path = false;  // adds the field path, relative to the folder
  std::string index = {};  // a file that FolderIndex::save wrote: the folder is not listed again
  std::uint64_t bytes_max = std::uint64_t{1} << 30;  // larger files are refused, and not read
};
struct ListOptions {
  bool hidden = false;  // wildcards match names that begin with a dot too
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

/// Reads the file whose path the field `path` holds, and puts its bytes in its place. A file of
/// more than `bytes_max` bytes is refused, and not read.
OpCall read_file(std::string path = "", std::uint64_t bytes_max = std::uint64_t{1} << 30);

struct FolderListing;

/// The images of a folder: names, sizes and classes, found without reading the images. Files are in
/// the order of their relative names, byte by byte. Immutable; copies share it.
class FolderIndex {
 public:
  /// Reads what `save` wrote, for the same folder here or elsewhere; ConfigError for anything else.
  static FolderIndex load(const std::string& file, const std::string& root);
  /// Names and sizes, no path of this machine. The file appears whole or not at all.
  void save(const std::string& file) const;
  /// Lists the folder again. ConfigError naming the first file that is missing, new, or of another
  /// size. Without it such a file shows when it is read.
  void check() const;

  [[nodiscard]] const std::string& root() const;
  [[nodiscard]] std::uint64_t files() const;
  [[nodiscard]] std::uint64_t bytes() const;
  /// Relative to the root.
  [[nodiscard]] std::string name(std::uint64_t file) const;
  /// Sorted; label i is class_names()[i].
  [[nodiscard]] const std::vector<std::string>& class_names() const;
  /// Images of each class.
  [[nodiscard]] std::vector<std::uint64_t> class_files() const;

  /// What is in the folder and not among the images.
  struct LeftOut {
    std::string reason;
    std::uint64_t count = 0;
    std::vector<std::string> first;  // five names at most, as text
  };
  [[nodiscard]] const std::vector<LeftOut>& left_out() const;
  /// "2 empty (cat/a.png, cat/b.png), 1 hidden (.thumbs)"; "" when nothing was left out.
  [[nodiscard]] std::string left_out_text() const;

  explicit FolderIndex(std::shared_ptr<const FolderListing> listing)
      : listing_(std::move(listing)) {}
  [[nodiscard]] const std::shared_ptr<const FolderListing>& listing() const { return listing_; }

 private:
  std::shared_ptr<const FolderListing> listing_;
};

/// Lists a folder of images: each folder directly in `root` that holds images, at any depth, is a
/// class. Hidden and empty files, other extensions and whatever cannot be an image is left out and
/// counted. ConfigError when nothing is left, or when there are images but no class folders.
FolderIndex list_images(const std::string& root, const FolderOptions& options = {});

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

  /// A stream. `factory()` makes a generator for each time through the data: a callable that
  /// returns an optional element (a number, a tuple of numbers, a struct with `fields()`, or a
  /// Sample), nothing at the end. One with `std::string save()` and `restore(const std::string&)`
  /// goes on where a state was saved; any other is pulled again from its start.
  template <typename F>
  static Dataset from_generator(F factory, const SourceOptions& options = {}) {
    return from_generator_fn(detail::make_generator_fn(std::move(factory)), options);
  }

  /// The batches of a Sequence: global batches, cut over replicas like any other.
  static Dataset from_sequence(std::shared_ptr<Sequence> sequence,
                               const SequenceOptions& options = {});

  // Files. They are listed when the dataset is described and read when a sample is needed; only
  // relative names, sizes and their number are part of the digests.
  /// {image: the encoded file, label: i64}; what was left out goes to the report sink.
  static Dataset image_folder(const std::string& root, const FolderOptions& options = {});
  static Dataset image_folder(const FolderIndex& index, bool with_path = false);
  /// {image: the encoded file, label: i64}, or without labels {image}.
  static Dataset from_paths(const std::vector<std::string>& paths,
                            const std::vector<std::int64_t>& labels = {});
  /// The paths of the files that match, sorted: `*`, `?` and `[a-z]` within a name, `**` for any
  /// folders. ConfigError when there are none.
  static Dataset list_files(const std::string& pattern, const ListOptions& options = {});

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
  /// A chain of image ops, fused.
  [[nodiscard]] Dataset map(const image::Chain& chain) const;

  // Predicates: typed, [](float x, std::int32_t label) { return x > 0; }, or of a Sample
  /// Keeps what passes; makes a stream, unless `mask`.
  template <typename F>
  [[nodiscard]] Dataset filter(F predicate, const FilterOptions& options = {}) const {
    return filter_op(predicate_op(std::move(predicate), options.name), options);
  }
  /// Ends at the first element that does not pass.
  template <typename F>
  [[nodiscard]] Dataset take_while(F predicate, const FilterOptions& options = {}) const {
    return take_while_op(predicate_op(std::move(predicate), options.name), options);
  }
  /// Keeps what passes, found once when a loader is made; the data stays indexed.
  template <typename F>
  [[nodiscard]] Dataset select(F predicate, const FilterOptions& options = {}) const {
    return select_op(predicate_op(std::move(predicate), options.name), options);
  }
  /// Two parts that share no sample: round(fraction * N) of them, and the rest, each in the
  /// dataset's order. The seed decides which. No data is read. ConfigError where a part would be
  /// empty, and after repeat().
  [[nodiscard]] std::pair<Dataset, Dataset> split(double fraction, std::uint64_t seed = 0) const;

  // One sample to a dataset: `fn(const Sample&)` or `fn(number)` returns one
  template <typename F>
  [[nodiscard]] Dataset flat_map(F fn, const FlatMapOptions& options = {}) const {
    return expand(detail::make_expand_fn<Dataset>(std::move(fn)),
                  {1, UINT64_MAX, options.name, options.spec}, "flat_map");
  }
  /// Takes turns between the datasets of `cycle` elements, `block` elements at a time.
  template <typename F>
  [[nodiscard]] Dataset interleave(F fn, const InterleaveOptions& options = {}) const {
    return expand(detail::make_expand_fn<Dataset>(std::move(fn)), options, "interleave");
  }

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
  /// The rows of batches, or of elements that carry several rows in their first dimension.
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
  /// The dataset with what must be looked at before a plan: runs each select() and split() once,
  /// and keeps what it found for all copies. Throws SampleError when a predicate fails.
  /// `while_waiting` is called now and then meanwhile; what it throws ends the search.
  [[nodiscard]] Dataset resolve(const std::function<void()>& while_waiting = {}) const;
  [[nodiscard]] Cardinality cardinality() const;
  [[nodiscard]] const ElementSpec& element_spec() const;
  [[nodiscard]] bool batched() const;
  /// True when elements are numbered only as they are pulled.
  [[nodiscard]] bool streamed() const;
  [[nodiscard]] Digests digests() const;
  /// Of the image folder it begins with; none where it begins with something else.
  [[nodiscard]] std::vector<std::string> class_names() const;
  /// One line per node.
  [[nodiscard]] std::string describe() const;
  /// Computes the sample at position `number` of the first pass, alone.
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
