// The verbs of Dataset: each checks what it is given and adds one node.
#include "penstock/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graph/make_node.h"
#include "penstock/image.h"
#include "sample/rows.h"

namespace penstock {
namespace {

std::optional<std::uint64_t> count_or_all(const char* word, std::int64_t count) {
  if (count < -1)
    throw ConfigError(fmt::format("{}: count must be 0 or more, got {}", word, count), {},
                      fmt::format("{}(-1) means {}", word,
                                  std::string_view(word) == "repeat" ? "for ever" : "all"));
  if (count == -1) return std::nullopt;
  return static_cast<std::uint64_t>(count);
}

}  // namespace

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

std::uint64_t Cardinality::count() const {
  if (is_endless())
    throw ConfigError("the dataset is endless and has no length", {},
                      "limit it with take(n), or count steps");
  if (kind_ == Kind::undecided)
    throw ConfigError("the length is not known yet: select() decides only when it runs", {},
                      "call resolve(): the dataset it returns has a length");
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
  if (!node.batched || node.is_leaf()) return false;
  const auto* map = node.as<MapVerb>();
  if (map != nullptr && map->whole) return true;
  return std::ranges::any_of(node.inputs, [](const NodePtr& input) { return after_whole(*input); });
}

}  // namespace

Dataset add_map(const Dataset& input, std::shared_ptr<const Op> op, std::uint64_t seed) {
  MapVerb verb{op, seed, input.batched() && !op->row_wise()};
  if (op->draws_by_row() && !input.batched())
    throw ConfigError(fmt::format("{}: it mixes the samples of a batch", op->describe()), {},
                      "put it after batch()");
  if (verb.whole) {
    if (!input.element_spec().known && !op->takes_lists())
      throw ConfigError(fmt::format("{}: a function of whole batches needs to know what they hold",
                                    op->describe()),
                        {}, "declare .spec on the map before it");
    for (const FieldSpec& field : input.element_spec().fields)
      if (op->takes_samples() && !is_dense(field))
        throw ConfigError(fmt::format("{}: field \"{}\" ({}) has no batch tensor", op->describe(),
                                      field.path, field.text()),
                          {}, "map it before batch, or declare .row_wise = true");
    if (op->random() && !op->draws_by_row())
      throw ConfigError(
          fmt::format("{}: an Rng is keyed for one sample, this function sees a batch",
                      op->describe()),
          {}, "declare .row_wise = true, or map before batch");
  }
  Node node = after(input, verb);
  // Row-wise ops see rows; whole ops see the batch with its rows as first dimension.
  node.spec = op->output(input.element_spec());
  if (verb.whole && !node.spec.known && !op->takes_lists()) node.spec = input.element_spec();
  const bool draws = op->random() && !op->draws_by_row();
  if (after_whole(*input.node()) && !input.element_spec().known)
    throw ConfigError(
        fmt::format("{}: what the collate_fn before it returns only running shows", op->describe()),
        {}, "declare .spec on it");
  if (after_whole(*input.node()) && (draws || !node.spec.known))
    throw ConfigError(fmt::format("{}: after a function of whole batches a map must have a known "
                                  "result and take no Rng",
                                  op->describe()),
                      {}, "put it before that function, or declare .spec");
  return make_node(std::move(node));
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
  return add_map(*this, call.op(), call.op()->seed());
}

Dataset Dataset::map(const image::Chain& chain) const {
  return map(static_cast<OpCall>(chain));
}

Dataset Dataset::from_sequence(std::shared_ptr<Sequence> sequence, const SequenceOptions& options) {
  if (!sequence) throw ConfigError("from_sequence: there is no Sequence");
  auto source = std::make_shared<SequenceSource>(std::move(sequence), options);
  Node node;
  node.spec = options.spec.value_or(ElementSpec::unknown());
  node.size = Cardinality::of(source->size());
  node.batched = true;
  node.verb = SequenceVerb{std::move(source)};
  return make_counted("from_sequence", std::move(node));
}

Dataset Dataset::from_generator_fn(GeneratorFn fn, const SourceOptions& options) {
  if (options.spec && fn.spec.known && *options.spec != fn.spec)
    throw ConfigError(fmt::format("from_generator: its elements are {}, declared was {}",
                                  fn.spec.text(), options.spec->text()));
  Node node;
  node.spec = options.spec ? *options.spec : fn.spec;
  node.size = Cardinality::unknown();
  node.stream = true;
  node.verb = GeneratorVerb{std::move(fn), options.name};
  return make_node(std::move(node));
}

Dataset add_expand(const Dataset& input, ExpandVerb verb, const std::optional<ElementSpec>& spec) {
  constexpr std::uint64_t kCycleMax = 1024;
  refuse_if_batched(input, verb.word.c_str(), "unbatch() first");
  if (verb.cycle < 1 || verb.cycle > kCycleMax)
    throw ConfigError(
        fmt::format("{}: cycle must be 1 to {}, got {}", verb.word, kCycleMax, verb.cycle));
  if (verb.block < 1)
    throw ConfigError(fmt::format("{}: block must be positive, got 0", verb.word));
  Node node = after(input, std::move(verb));
  node.spec = spec.value_or(ElementSpec::unknown());
  node.size = input.cardinality().is_endless() ? input.cardinality() : Cardinality::unknown();
  node.stream = true;
  return make_node(std::move(node));
}

Dataset Dataset::expand(std::function<Dataset(const Sample&)> fn, const InterleaveOptions& options,
                        const char* word) const {
  return add_expand(*this, {std::move(fn), options.cycle, options.block, options.name, word},
                    options.spec);
}

Dataset Dataset::shuffle(const ShuffleOptions& options) const {
  if (options.window == 0U)
    throw ConfigError("shuffle: a window of 0 elements holds nothing", {},
                      "give it the number of elements to permute at a time");
  if (batched() && (options.window || streamed()))
    throw ConfigError("shuffle: windows of steps, and steps of a stream, are not shuffled", {},
                      "shuffle({.window = n}) before batch");
  if (options.window) return make_node(after(*this, ShuffleVerb{options}));
  if (streamed())
    throw ConfigError("shuffle: a stream has no end before it is pulled, so there is no whole", {},
                      "shuffle({.window = n}), or shuffle before what makes it a stream");
  if (cardinality().is_endless())
    throw ConfigError("shuffle: an endless dataset cannot be shuffled as a whole", {},
                      "shuffle before repeat: each round then has its own order");
  return make_node(after(*this, ShuffleVerb{options}));
}

Dataset Dataset::repeat(std::int64_t count) const {
  const auto rounds = count_or_all("repeat", count);
  if (cardinality().is_endless()) return rounds == 0U ? take(0) : *this;
  Node node = after(*this, RepeatVerb{rounds});
  if (cardinality().is_unknown()) return make_node(std::move(node));
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
  if (wanted && !cardinality().is_unknown())
    node.size = Cardinality::of(
        cardinality().is_endless() ? *wanted : std::min(*wanted, cardinality().count()));
  return make_node(std::move(node));
}

Dataset Dataset::skip(std::int64_t count) const {
  const auto unwanted = count_or_all("skip", count);
  Node node = after(*this, SkipVerb{unwanted});
  if (!unwanted && !cardinality().is_unknown()) {
    node.size = Cardinality::of(0);
  } else if (cardinality().is_counted()) {
    const std::uint64_t all = cardinality().count();
    node.size = Cardinality::of(all - std::min(all, unwanted.value_or(all)));
  }
  return make_node(std::move(node));
}

Dataset Dataset::shard(std::int64_t count, std::int64_t index) const {
  if (count < 1) throw ConfigError(fmt::format("shard: count must be positive, got {}", count));
  if (index < 0 || index >= count)
    throw ConfigError(fmt::format("shard: index must be in 0..{}, got {}", count - 1, index));
  const auto shards = static_cast<std::uint64_t>(count);
  const auto which = static_cast<std::uint64_t>(index);
  Node node = after(*this, ShardVerb{shards, which});
  if (cardinality().is_counted()) {
    const std::uint64_t all = cardinality().count();
    node.size = Cardinality::of(all > which ? (all - which - 1) / shards + 1 : 0);
  }
  return make_node(std::move(node));
}

Dataset Dataset::enumerate() const {
  refuse_if_batched(*this, "enumerate",
                    "enumerate() before batch numbers the samples; a batch knows its step()");
  Node node = after(*this, EnumerateVerb{});
  node.spec = ElementSpec::tuple({ElementSpec::single(Dtype::i64), element_spec()});
  return make_node(std::move(node));
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
  if (cardinality().is_counted())
    node.size = Cardinality::of(groups_of(verb, cardinality(), std::nullopt).steps());
  return make_counted("batch", std::move(node));
}

namespace {

/// What is left of each field without its first dimension.
ElementSpec row_spec(ElementSpec spec) {
  for (FieldSpec& field : spec.fields) {
    if (field.shape.empty() || is_variable(field.dtype))
      throw ConfigError(fmt::format("unbatch: field \"{}\" ({}) has no first dimension of rows",
                                    field.path, field.text()));
    field.shape.erase(field.shape.begin());
  }
  return spec;
}

bool has_sequence(const Node& node) {
  if (node.as<SequenceVerb>()) return true;
  if (node.as<BatchVerb>()) return false;
  return std::ranges::any_of(node.inputs,
                             [](const NodePtr& input) { return has_sequence(*input); });
}

/// The first node, from `node` down to its batch, that keeps rows from being found by number.
const Node* blocks_unbatch(const Node& node) {
  if (node.is_leaf()) return nullptr;
  const MapVerb* const map = node.as<MapVerb>();
  if (node.as<ShuffleVerb>() || node.as<ShardVerb>() || (map != nullptr && map->whole))
    return &node;
  for (const NodePtr& input : node.inputs)
    if (const Node* found = blocks_unbatch(*input)) return found;
  return nullptr;
}

}  // namespace

Dataset Dataset::unbatch() const {
  if (!batched()) {
    Node node = after(*this, RowsVerb{});
    node.spec = row_spec(element_spec());
    node.size = Cardinality::unknown();
    node.stream = true;
    return make_node(std::move(node));
  }
  if (const Node* found = blocks_unbatch(*node_))
    throw ConfigError(fmt::format("unbatch: not after {}", describe_node(*found)), {},
                      "unbatch before it, or shuffle, shard and map the samples");
  Node node = after(*this, UnbatchVerb{});
  node.batched = false;
  if (has_sequence(*node_)) {  // nobody knows how many rows there will be
    node.stream = true;
    node.size = Cardinality::unknown();
  }
  if (cardinality().is_counted()) node.size = Cardinality::of(rows_of(*node_));
  return make_node(std::move(node));
}

Dataset Dataset::cache(const CacheOptions& options) const {
  if (streamed())
    throw ConfigError("cache: not of a stream", {},
                      "cache() before what makes it a stream, or use select() instead of filter()");
  if (cardinality().is_endless())
    throw ConfigError("cache: an endless dataset does not fit", {}, "cache before repeat");
  if (batched() && has_sequence(*node_))
    throw ConfigError("cache: not of a Sequence's batches", {},
                      "unbatch() is a stream; or keep them in the Sequence");
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
  return make_node(
      after(*this, CacheVerb{options.bytes_max, std::make_shared<CacheStores>(options.bytes_max)}));
}

Dataset Dataset::prefetch(const PrefetchOptions& options) const {
  return make_node(after(*this, PrefetchVerb{options}));
}

Dataset Dataset::with_options(const Options& options) const {
  return make_node(after(*this, OptionsVerb{options}));
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
bool Dataset::streamed() const {
  return node_->stream;
}
Digests Dataset::digests() const {
  return digests_of(*node_, std::nullopt);
}

}  // namespace penstock
