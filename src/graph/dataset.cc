// The verbs of Dataset: each checks what it is given and adds one node.
#include "penstock/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graph/node.h"
#include "sample/rows.h"

namespace penstock {
namespace {

Dataset make(Node node) {
  return Dataset(std::make_shared<const Node>(std::move(node)));
}

[[noreturn]] void refuse_count(const std::string& word, std::uint64_t count, const char* what) {
  throw ConfigError(fmt::format("{}: {} {} are above 2^62", word, count, what), {},
                    "use repeat() for an endless dataset");
}

/// `make` for nodes that may have more elements, or samples in their steps, than can be numbered.
Dataset make_counted(const std::string& word, Node node) {
  constexpr std::uint64_t kCountMax = 1ULL << 62;
  if (!node.size.is_endless()) {
    if (node.size.count() > kCountMax) refuse_count(word, node.size.count(), "elements");
    const std::uint64_t rows = node.batched ? steps_of(node, std::nullopt, 0).steps.rows() : 0;
    if (rows > kCountMax && rows != kUncounted) refuse_count(word, rows, "samples");
  }
  return make(std::move(node));
}

/// A node with one input that keeps what its elements look like.
Node after(const Dataset& input, Verb verb) {
  Node node;
  node.verb = std::move(verb);
  node.inputs = {input.node()};
  node.spec = input.element_spec();
  node.size = input.cardinality();
  node.batched = input.batched();
  return node;
}

Dataset from_source(std::shared_ptr<const Source> source, const SourceOptions& options) {
  // What a function returns may be declared; what an array holds is there to see.
  if (options.spec && source->spec().known && *options.spec != source->spec())
    throw ConfigError(fmt::format("{}: the data is {}, declared was {}", source->word(),
                                  source->spec().text(), options.spec->text()));
  Node node;
  node.spec = options.spec ? *options.spec : source->spec();
  node.size = Cardinality::of(source->size());
  const std::string word = source->word();
  node.verb = SourceVerb{std::move(source)};
  return make_counted(word, std::move(node));
}

std::optional<std::uint64_t> count_or_all(const char* word, std::int64_t count) {
  if (count < -1)
    throw ConfigError(fmt::format("{}: count must be 0 or more, got {}", word, count), {},
                      fmt::format("{}(-1) means {}", word,
                                  std::string_view(word) == "repeat" ? "for ever" : "all"));
  if (count == -1) return std::nullopt;
  return static_cast<std::uint64_t>(count);
}

void refuse_if_batched(const Dataset& dataset, const char* word, const std::string& remedy) {
  if (dataset.batched())
    throw ConfigError(fmt::format("{}: these elements are batches already", word), {}, remedy);
}

}  // namespace

std::uint64_t Cardinality::count() const {
  if (is_endless())
    throw ConfigError("the dataset is endless and has no length", {},
                      "limit it with take(n), or count steps");
  if (is_unknown())
    throw ConfigError("the dataset is a stream: its length shows only as it is pulled", {},
                      "go on until next() gives nothing, or limit it with take(n)");
  return count_;
}

std::string Cardinality::text() const {
  if (is_counted()) return fmt::format("{}", count_);
  return is_endless() ? "endless" : "unknown";
}

Dataset Dataset::range(std::int64_t start, std::int64_t stop, std::int64_t step) {
  return from_source(make_range(start, stop, step), {});
}

Dataset Dataset::from_tensors(Sample sample, const SourceOptions& options) {
  return from_source(make_tensors(std::move(sample), options.name), options);
}

Dataset Dataset::from_tensor_slices(Sample tensors, const SourceOptions& options) {
  return from_source(make_tensor_slices(std::move(tensors), options.name), options);
}

Dataset Dataset::from_index_fn(std::uint64_t size, IndexFn fn, const SourceOptions& options) {
  if (options.spec) fn.spec = *options.spec;
  return from_source(make_index(size, std::move(fn), options.name), options);
}

namespace {

/// True when a function of whole batches lies between `node` and its batch.
bool after_whole(const Node& node) {
  if (!node.batched || node.as<BatchVerb>()) return false;
  const auto* map = node.as<MapVerb>();
  if (map != nullptr && map->whole) return true;
  return std::ranges::any_of(node.inputs, [](const NodePtr& input) { return after_whole(*input); });
}

}  // namespace

Dataset add_map(const Dataset& input, std::shared_ptr<const Op> op, std::uint64_t seed) {
  MapVerb verb{op, seed, input.batched() && !op->row_wise()};
  if (verb.whole) {
    if (!input.element_spec().known)
      throw ConfigError(fmt::format("{}: a function of whole batches needs to know what they hold",
                                    op->describe()),
                        {}, "declare .spec on the map before it");
    for (const FieldSpec& field : input.element_spec().fields)
      if (op->takes_samples() && !is_dense(field))
        throw ConfigError(fmt::format("{}: field \"{}\" ({}) has no batch tensor", op->describe(),
                                      field.path, field.text()),
                          {}, "map it before batch, or declare .row_wise = true");
    if (op->random())
      throw ConfigError(
          fmt::format("{}: an Rng is keyed for one sample, this function sees a batch",
                      op->describe()),
          {}, "declare .row_wise = true, or map before batch");
  }
  Node node = after(input, verb);
  // Row-wise ops see rows; whole ops see the batch with its rows as first dimension.
  node.spec = op->output(input.element_spec());
  if (verb.whole && !node.spec.known) node.spec = input.element_spec();
  if (after_whole(*input.node()) && (op->random() || !node.spec.known))
    throw ConfigError(fmt::format("{}: after a function of whole batches a map must have a known "
                                  "result and take no Rng",
                                  op->describe()),
                      {}, "put it before that function, or declare .spec");
  return make(std::move(node));
}

Dataset Dataset::map_column(ColumnFn fn, const MapOptions& options) const {
  return add_map(*this, make_column_op(std::move(fn), options.name), options.seed);
}

Dataset Dataset::map_sample(SampleFn fn, const MapOptions& options) const {
  return add_map(*this, make_sample_op(std::move(fn), options), options.seed);
}

Dataset Dataset::map_block(BlockFn fn, const MapOptions& options) const {
  return add_map(*this, make_block_op(std::move(fn), options), options.seed);
}

Dataset Dataset::map(const OpCall& call) const {
  return add_map(*this, call.op(), 0);
}

Dataset Dataset::shuffle(const ShuffleOptions& options) const {
  if (cardinality().is_endless())
    throw ConfigError("shuffle: an endless dataset cannot be shuffled as a whole", {},
                      "shuffle before repeat: each round then has its own order");
  return make(after(*this, ShuffleVerb{options}));
}

Dataset Dataset::repeat(std::int64_t count) const {
  const auto rounds = count_or_all("repeat", count);
  if (cardinality().is_endless()) return rounds == 0U ? take(0) : *this;
  Node node = after(*this, RepeatVerb{rounds});
  const std::uint64_t each = cardinality().count();
  std::uint64_t total = 0;
  if (!rounds) {
    if (each > 0) node.size = Cardinality::endless();
  } else if (__builtin_mul_overflow(each, *rounds, &total)) {
    refuse_count("repeat", each, "elements, repeated");
  } else {
    node.size = Cardinality::of(total);
  }
  return make_counted("repeat", std::move(node));
}

Dataset Dataset::take(std::int64_t count) const {
  const auto wanted = count_or_all("take", count);
  Node node = after(*this, TakeVerb{wanted});
  if (wanted)
    node.size = Cardinality::of(
        cardinality().is_endless() ? *wanted : std::min(*wanted, cardinality().count()));
  return make(std::move(node));
}

Dataset Dataset::skip(std::int64_t count) const {
  const auto unwanted = count_or_all("skip", count);
  Node node = after(*this, SkipVerb{unwanted});
  if (!unwanted) {
    node.size = Cardinality::of(0);
  } else if (!cardinality().is_endless()) {
    const std::uint64_t all = cardinality().count();
    node.size = Cardinality::of(all - std::min(all, *unwanted));
  }
  return make(std::move(node));
}

Dataset Dataset::shard(std::int64_t count, std::int64_t index) const {
  if (count < 1) throw ConfigError(fmt::format("shard: count must be positive, got {}", count));
  if (index < 0 || index >= count)
    throw ConfigError(fmt::format("shard: index must be in 0..{}, got {}", count - 1, index));
  const auto shards = static_cast<std::uint64_t>(count);
  const auto which = static_cast<std::uint64_t>(index);
  Node node = after(*this, ShardVerb{shards, which});
  if (!cardinality().is_endless()) {
    const std::uint64_t all = cardinality().count();
    node.size = Cardinality::of(all > which ? (all - which - 1) / shards + 1 : 0);
  }
  return make(std::move(node));
}

Dataset Dataset::concatenate(const Dataset& other) const {
  if (batched() != other.batched())
    throw ConfigError("concatenate: one side is batched, the other is not", {},
                      "batch both, or batch the result");
  const ElementSpec& left = element_spec();
  const ElementSpec& right = other.element_spec();
  if (left.known && right.known && left != right)
    throw ConfigError(
        fmt::format("concatenate: the elements are {} on one side and {} on the other", left.text(),
                    right.text()));
  Node node = after(*this, ConcatenateVerb{});
  node.inputs.push_back(other.node());
  if (!right.known) node.spec = right;
  if (cardinality().is_endless() || other.cardinality().is_endless()) {
    node.size = Cardinality::endless();
  } else {
    node.size = Cardinality::of(cardinality().count() + other.cardinality().count());
  }
  return make_counted("concatenate", std::move(node));
}

Dataset Dataset::zip(const std::vector<Dataset>& parts, const ZipOptions& options) {
  if (parts.empty()) throw ConfigError("zip: there is nothing to zip");
  Node node;
  node.verb = ZipVerb{options.strict};
  std::vector<ElementSpec> specs;
  node.size = parts.front().cardinality();
  for (const Dataset& part : parts) {
    refuse_if_batched(part, "zip", "zip the samples, then batch");
    if (options.strict && part.cardinality() != parts.front().cardinality())
      throw ConfigError("zip: the parts have different lengths and strict was asked for");
    specs.push_back(part.element_spec());
    node.inputs.push_back(part.node());
    if (part.cardinality().is_endless()) continue;
    if (node.size.is_endless() || part.cardinality().count() < node.size.count())
      node.size = part.cardinality();
  }
  node.spec = ElementSpec::tuple(specs);
  return make(std::move(node));
}

Dataset Dataset::enumerate() const {
  refuse_if_batched(*this, "enumerate",
                    "enumerate() before batch numbers the samples; a batch knows its step()");
  Node node = after(*this, EnumerateVerb{});
  node.spec = ElementSpec::tuple({ElementSpec::single(Dtype::i64), element_spec()});
  return make(std::move(node));
}

Dataset Dataset::batch(std::int64_t size, const BatchOptions& options) const {
  if (size < 1) throw ConfigError(fmt::format("batch: size must be positive, got {}", size));
  refuse_if_batched(*this, "batch", "unbatch() first to form batches of another size");
  BatchVerb verb{static_cast<std::uint64_t>(size), options.tail};
  if (options.drop_remainder) {
    if (options.tail && *options.tail != Tail::drop)
      throw ConfigError("batch: drop_remainder and another tail policy were both asked for");
    verb.tail = Tail::drop;
  }
  for (const FieldSpec& field : element_spec().fields)
    if (!is_variable(field.dtype) && !shape_known(field.shape))
      throw ConfigError(fmt::format("batch: the rows of field \"{}\" ({}) may differ in shape",
                                    field.path, field.text()),
                        {}, "map them to one shape first");
  Node node = after(*this, verb);
  node.batched = true;
  if (!cardinality().is_endless())
    node.size = Cardinality::of(groups_of(verb, cardinality(), std::nullopt).steps());
  return make_counted("batch", std::move(node));
}

namespace {

/// The first node, from `node` down to its batch, that keeps rows from being found by number.
const Node* blocks_unbatch(const Node& node) {
  if (node.as<BatchVerb>() != nullptr) return nullptr;
  const MapVerb* const map = node.as<MapVerb>();
  if (node.as<ShuffleVerb>() || node.as<ShardVerb>() || (map != nullptr && map->whole))
    return &node;
  for (const NodePtr& input : node.inputs)
    if (const Node* found = blocks_unbatch(*input)) return found;
  return nullptr;
}

}  // namespace

Dataset Dataset::unbatch() const {
  if (!batched()) throw ConfigError("unbatch: these elements are samples, not batches");
  if (const Node* found = blocks_unbatch(*node_))
    throw ConfigError(fmt::format("unbatch: not after {}", describe_node(*found)), {},
                      "unbatch before it, or shuffle, shard and map the samples");
  Node node = after(*this, UnbatchVerb{});
  node.batched = false;
  if (!cardinality().is_endless())
    node.size = Cardinality::of(steps_of(*node_, std::nullopt, 0).steps.rows());
  return make(std::move(node));
}

Dataset Dataset::cache(const CacheOptions& options) const {
  if (cardinality().is_endless())
    throw ConfigError("cache: an endless dataset does not fit", {}, "cache before repeat");
  // Batches are kept as their rows, which are the same only as long as nothing reorders them.
  for (const Node* node = node_.get(); batched() && node->as<BatchVerb>() == nullptr;
       node = &node->input()) {
    const MapVerb* const map = node->as<MapVerb>();
    const bool rows_stay = (map != nullptr && !map->whole) || node->as<CacheVerb>() ||
                           node->as<PrefetchVerb>() || node->as<OptionsVerb>();
    if (!rows_stay)
      throw ConfigError(fmt::format("cache: not after {} of batches", describe_node(*node)), {},
                        "put cache() before it");
  }
  return make(
      after(*this, CacheVerb{options.bytes_max, std::make_shared<CacheStores>(options.bytes_max)}));
}

Dataset Dataset::prefetch(const PrefetchOptions& options) const {
  return make(after(*this, PrefetchVerb{options}));
}

Dataset Dataset::with_options(const Options& options) const {
  return make(after(*this, OptionsVerb{options}));
}

Cardinality Dataset::cardinality() const {
  return node_->size;
}
const ElementSpec& Dataset::element_spec() const {
  return node_->spec;
}
bool Dataset::batched() const {
  return node_->batched;
}
Digests Dataset::digests() const {
  return digests_of(*node_, std::nullopt);
}

}  // namespace penstock
