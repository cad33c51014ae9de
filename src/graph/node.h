#pragma once
// The nodes of a dataset. A node says what was asked for and what its elements look like; plan/
// decides how it runs.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/mutex.h"
#include "op/op.h"
#include "order/chosen.h"
#include "order/steps.h"
#include "penstock/dataset.h"
#include "sample/row_store.h"
#include "source/sequence.h"
#include "source/source.h"

namespace penstock {

/// What a select found, kept for whoever resolves it next. Thread-safe.
class SelectCell {
 public:
  /// `find()` is called once.
  template <typename Find>
  std::shared_ptr<const Chosen> get(Find find) {
    Lock lock(mutex_);
    if (!chosen_) chosen_ = find();
    return chosen_;
  }

 private:
  Mutex mutex_;
  std::shared_ptr<const Chosen> chosen_ PENSTOCK_GUARDED_BY(mutex_);
};

struct SourceVerb {
  std::shared_ptr<const Source> source;
};
/// Batches by index.
struct SequenceVerb {
  std::shared_ptr<SequenceSource> source;
};
struct MapVerb {
  std::shared_ptr<const Op> op;
  std::uint64_t seed = 0;
  bool whole = false;  // sees the whole global batch
};
/// A stream from a user's generator.
struct GeneratorVerb {
  GeneratorFn fn;
  std::string name;
};
/// `op` gives one bool a row.
struct FilterVerb {
  std::shared_ptr<const Op> op;
  std::uint64_t seed = 0;
  bool mask = false;  // rows keep their place and are marked
};
struct TakeWhileVerb {
  std::shared_ptr<const Op> op;
  std::uint64_t seed = 0;
};
/// Elements found once, when the dataset is resolved: by a predicate, or, of a split, by a
/// permutation of their places.
struct SelectVerb {
  std::shared_ptr<const Op> op;  // null: a split
  std::uint64_t seed = 0;
  double fraction = 0;                        // of a split
  bool rest = false;                          // the other part of it
  std::shared_ptr<SelectCell> cell;           // shared by all copies
  std::shared_ptr<const Chosen> chosen = {};  // once resolved
};
/// flat_map and interleave: a dataset for each element.
struct ExpandVerb {
  std::function<Dataset(const Sample&)> fn;
  std::uint64_t cycle = 1;
  std::uint64_t block = UINT64_MAX;
  std::string name;
  std::string word;
};
/// The rows of elements that have several: unbatch of samples.
struct RowsVerb {};
struct BatchVerb {
  std::uint64_t size = 1;
  std::optional<Tail> tail;
};
struct UnbatchVerb {};
struct ShuffleVerb {
  ShuffleOptions options;
};
struct RepeatVerb {
  std::optional<std::uint64_t> count;  // nothing: for ever
};
struct TakeVerb {
  std::optional<std::uint64_t> count;  // nothing: all
};
struct SkipVerb {
  std::optional<std::uint64_t> count;  // nothing: all
};
struct ShardVerb {
  std::uint64_t count = 1;
  std::uint64_t index = 0;
};
/// Two inputs or more.
struct ConcatenateVerb {};
struct ZipVerb {
  bool strict = false;
};
struct EnumerateVerb {};
/// What a cache keeps. Used in several places of a graph it keeps rows for each, since the same
/// sample has another id, and draws other numbers, in each. Thread-safe.
class CacheStores {
 public:
  /// Where in a graph: the first id, and how many sources and random ops came before its end.
  using Place = std::array<std::uint64_t, 3>;
  explicit CacheStores(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
  std::shared_ptr<RowStore> at(const Place& place) {
    Lock lock(mutex_);
    auto& store = stores_[place];
    if (!store) store = std::make_shared<RowStore>(bytes_max_);
    return store;
  }

 private:
  const std::uint64_t bytes_max_;
  Mutex mutex_;
  std::map<Place, std::shared_ptr<RowStore>> stores_ PENSTOCK_GUARDED_BY(mutex_);
};
struct CacheVerb {
  std::uint64_t bytes_max = UINT64_MAX;
  std::shared_ptr<CacheStores> stores;
};
struct PrefetchVerb {
  PrefetchOptions options;
};
struct OptionsVerb {
  Options options;
};
using Verb = std::variant<SourceVerb, SequenceVerb, GeneratorVerb, MapVerb, FilterVerb,
                          TakeWhileVerb, SelectVerb, ExpandVerb, RowsVerb, BatchVerb, UnbatchVerb,
                          ShuffleVerb, RepeatVerb, TakeVerb, SkipVerb, ShardVerb, ConcatenateVerb,
                          ZipVerb, EnumerateVerb, CacheVerb, PrefetchVerb, OptionsVerb>;

using NodePtr = std::shared_ptr<const Node>;

/// Immutable. `size` and `spec` are of the elements: samples, or the rows of batches once batched.
class Node {
 public:
  Verb verb;
  std::vector<NodePtr> inputs;
  ElementSpec spec;
  Cardinality size = Cardinality::of(0);
  bool batched = false;
  bool stream = false;          // elements are numbered as they are pulled
  std::uint64_t depth = 1;      // levels of nodes, this one included
  std::uint64_t nodes = 1;      // of the graph that ends here, by every way to them
  std::uint64_t step_rows = 0;  // of a concatenate of batches: as Steps::rows counts

  [[nodiscard]] const Node& input() const { return *inputs.front(); }
  /// A batch node, or what has batches from its start.
  [[nodiscard]] bool is_leaf() const { return as<BatchVerb>() || as<SequenceVerb>(); }
  template <typename V>
  [[nodiscard]] const V* as() const {
    return std::get_if<V>(&verb);
  }
};

/// The word users wrote, "shuffle"; and the node on one line, "shuffle(seed=7)".
std::string verb_word(const Node& node);
std::string describe_node(const Node& node);

/// A dataset that begins with `source`.
Dataset from_source(std::shared_ptr<const Source> source, const SourceOptions& options);

/// Adds a map of `op`; every form of Dataset::map ends here.
Dataset add_map(const Dataset& input, std::shared_ptr<const Op> op, std::uint64_t seed);

/// Adds a filter, or a take_while, of an op that gives one bool.
Dataset add_filter(const Dataset& input, FilterVerb verb);
Dataset add_take_while(const Dataset& input, TakeWhileVerb verb);
Dataset add_expand(const Dataset& input, ExpandVerb verb, const std::optional<ElementSpec>& spec);

/// Adds a select or a split; its number of elements is known once `verb.chosen` is.
Dataset add_select(const Dataset& input, SelectVerb verb);
/// True when some select has not been resolved.
bool is_unresolved(const Node& root);
/// `node`'s verb on other inputs, as if it had been written there.
Dataset reapply(const Node& node, const std::vector<Dataset>& inputs);

/// How a batch node groups `samples`; `tail` fills in where it names no policy.
Groups groups_of(const BatchVerb& batch, const Cardinality& samples, std::optional<Tail> tail);
/// The steps of a batched node, and its batch nodes by leaf number. `drawn_seed` stands for seeds
/// that are to be drawn.
struct StepsOf {
  Steps steps;
  std::vector<const Node*> leaves;
};
StepsOf steps_of(const Node& batched, std::optional<Tail> tail, std::uint64_t drawn_seed);
/// Samples in the steps of a batched node, as Steps::rows counts.
std::uint64_t rows_of(const Node& batched);

/// What the order digest is made of, one line per node; G and the tail only where steps are
/// counted. `tail` fills in where a batch names none.
std::vector<std::string> order_parts(const Node& root, std::optional<Tail> tail);
Digests digests_of(const Node& root, std::optional<Tail> tail);
/// True when a state of this dataset loads at another batch size: one batch node, and nothing but
/// repeats, caches and maps after it.
bool batch_size_is_free(const Node& root);

}  // namespace penstock
