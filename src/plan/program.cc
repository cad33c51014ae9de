#include "plan/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/fault.h"
#include "graph/tail.h"
#include "plan/flows.h"
#include "plan/stages.h"

namespace penstock {
namespace {

/// Numbers of the samples that `node` can refer to: where the ids after it begin.
std::uint64_t id_space(const Node& node) {
  if (const auto* source = node.as<SourceVerb>()) return source->source->size();
  if (node.as<GeneratorVerb>() || node.as<SequenceVerb>() || node.as<ExpandVerb>() ||
      node.as<RowsVerb>())
    return kStreamIds;
  if (!node.as<ConcatenateVerb>()) return id_space(node.input());
  std::uint64_t ids = 0;
  for (const NodePtr& input : node.inputs) ids += id_space(*input);
  return ids;
}

/// Rounds of all repeats below, combined as Turn combines them; as many as there are numbers where
/// they are more.
std::uint64_t rounds_below(const Node& node) {
  if (node.inputs.empty()) return 1;
  std::uint64_t below = rounds_below(node.input());
  if (const auto* repeat = node.as<RepeatVerb>()) {
    const std::uint64_t rounds = repeat->count.value_or(kEndlessRounds);
    if (__builtin_mul_overflow(below, rounds, &below)) return UINT64_MAX;
  }
  if (node.as<ConcatenateVerb>())
    for (const NodePtr& input : node.inputs) below = std::max(below, rounds_below(*input));
  return below;
}

/// A random op that a cache above would freeze, if there is one; one below another cache was told.
const Node* random_below(const Node& node) {
  if (node.as<CacheVerb>()) return nullptr;
  const auto is_random = [](const auto* verb) { return verb && verb->op->random(); };
  if (is_random(node.as<MapVerb>()) || is_random(node.as<FilterVerb>())) return &node;
  for (const NodePtr& input : node.inputs)
    if (const Node* found = random_below(*input)) return found;
  return nullptr;
}

/// Walks the graph once, inputs first, and numbers sources and random ops as it meets them.
class Compiler {
 public:
  explicit Compiler(const CompileOptions& options) : options_(options) {}

  StagePtr samples(const Node& node, std::uint64_t first_id);
  std::vector<Chain> steps(const Node& node, std::uint64_t first_id);
  FlowPtr flow(const Node& node, std::uint64_t first_id);
  /// Steps of a stream; the chains of its batch nodes are added to `chains`.
  StepFlowPtr step_flow(const Node& node, std::uint64_t first_id, std::optional<Tail> tail,
                        std::vector<Chain>& chains);
  [[nodiscard]] bool random() const { return random_ops_ > 0; }
  [[nodiscard]] std::size_t rows_at_once() const { return rows_at_once_; }
  [[nodiscard]] bool long_blocks() const { return long_blocks_; }
  [[nodiscard]] bool masks() const { return masks_; }
  std::vector<std::string> take_notes() { return std::move(notes_); }
  std::vector<std::string> take_warnings() { return std::move(warnings_); }

 private:
  [[nodiscard]] StepShuffle order_of(const ShuffleVerb& verb) const {
    const Seed& seed = verb.options.seed;
    const bool drawn = seed.drawn || PENSTOCK_OFF("shuffle.shared");
    return {drawn ? options_.drawn_seed : seed.value,
            verb.options.reshuffle_each_epoch && !PENSTOCK_OFF("shuffle.anew")};
  }
  StagePtr zip(const Node& node, std::uint64_t first_id);
  StagePtr unbatch(const Node& node, std::uint64_t first_id);
  struct Deferred {
    const Node* map;
    MapPlace place;
  };
  FlowPtr sequence(const Node& node, std::uint64_t first_id, std::vector<Deferred>& deferred);
  FlowPtr moved(const Node& node, FlowPtr input) const;
  StepFlowPtr sequence_steps(const Node& node, std::optional<Tail> tail, std::vector<Chain> made,
                             std::vector<Chain>& chains) const;
  FlowPtr expand(const Node& node, const ExpandVerb& verb, std::uint64_t first_id);
  StagePtr predicate(const Flow& input, const std::shared_ptr<const Op>& op, std::uint64_t seed,
                     const Node& node);
  /// A map after batch, on the chains from `first` on.
  static void map_chains(const Node& node, const MapVerb& map, const MapPlace& place,
                         std::span<Chain> chains);
  MapPlace place_of(const Op& op, std::uint64_t seed, const std::string& line) {
    MapPlace place{fmt::format("{}#{}", line, ops_++), seed, random_ops_};
    if (op.random()) ++random_ops_;
    if (op.rows_at_once() > 0)
      notes_.push_back(fmt::format("{}: in {} worker processes", place.title, op.rows_at_once()));
    rows_at_once_ = std::max(rows_at_once_, op.rows_at_once());
    long_blocks_ = long_blocks_ || op.prefers_long_blocks();
    return place;
  }
  MapPlace place_of(const MapVerb& map) { return place_of(*map.op, map.seed, map.op->describe()); }
  [[nodiscard]] std::shared_ptr<RowStore> store_of(const Node& node, const CacheVerb& cache,
                                                   std::uint64_t first_id) {
    if (const Node* random = random_below(node.input());
        random && !PENSTOCK_OFF("warn.random_cache"))
      warnings_.push_back(
          fmt::format("cache() follows a random op ({}): every epoch repeats the random numbers of "
                      "the first; put cache() before it",
                      describe_node(*random)));
    // A drawn seed makes other rows for each loader, so those cannot share.
    if (wants_drawn_seed(node)) return std::make_shared<RowStore>(cache.bytes_max);
    return cache.stores->at({first_id, sources_, random_ops_});
  }

  CompileOptions options_;
  std::uint32_t sources_ = 0;
  std::uint64_t ops_ = 0;
  std::uint64_t random_ops_ = 0;
  std::size_t rows_at_once_ = 0;
  bool long_blocks_ = false;
  std::vector<std::string> notes_;
  std::vector<std::string> warnings_;
  bool masks_ = false;
};

StagePtr Compiler::zip(const Node& node, std::uint64_t first_id) {
  std::vector<StagePtr> parts;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Node& input = *node.inputs[i];
    parts.push_back(samples(input, first_id));
    if (!input.size.is_endless() && input.size != node.size)
      notes_.push_back(fmt::format("zip: {} of the {} samples of part {} are unused",
                                   input.size.count() - node.size.count(), input.size.count(), i));
  }
  return zip_stage(std::move(parts), node.spec);
}

StagePtr Compiler::unbatch(const Node& node, std::uint64_t first_id) {
  std::vector<StagePtr> leaves;
  for (Chain& chain : steps(node.input(), first_id)) {
    PENSTOCK_CHECK(chain.whole.empty());
    leaves.push_back(std::move(chain.samples));
  }
  return unbatch_stage(std::move(leaves),
                       steps_of(node.input(), std::nullopt, options_.drawn_seed).steps, node.spec);
}

StagePtr Compiler::samples(const Node& node, std::uint64_t first_id) {
  if (const auto* source = node.as<SourceVerb>())
    return source_stage(source->source, node.spec, {sources_++, first_id});
  if (node.as<ZipVerb>()) return zip(node, first_id);
  if (node.as<UnbatchVerb>()) return unbatch(node, first_id);

  StagePtr input = samples(node.input(), first_id);
  const Cardinality& input_size = node.input().size;
  if (const auto* map = node.as<MapVerb>())
    return map_stage(std::move(input), map->op, node.spec, place_of(*map));
  if (const auto* filter = node.as<FilterVerb>()) {
    masks_ = true;
    return mask_stage(std::move(input), filter->op,
                      place_of(*filter->op, filter->seed, describe_node(node)));
  }
  if (const auto* select = node.as<SelectVerb>()) {
    if (select->op) place_of(*select->op, select->seed, "");
    return select_stage(std::move(input), select->chosen);
  }
  if (const auto* shuffle = node.as<ShuffleVerb>(); shuffle && shuffle->options.window)
    return window_stage(std::move(input), input_size.is_endless() ? kEndless : input_size.count(),
                        *shuffle->options.window, order_of(*shuffle));
  if (const auto* shuffle = node.as<ShuffleVerb>())
    return shuffle_stage(std::move(input), input_size.count(), order_of(*shuffle));
  if (const auto* repeat = node.as<RepeatVerb>())
    return repeat_stage(std::move(input), input_size.count(),
                        repeat->count.value_or(kEndlessRounds));
  if (const auto* skip = node.as<SkipVerb>())
    return stride_stage(std::move(input), skip->count.value_or(0), 1);
  if (const auto* shard = node.as<ShardVerb>())
    return stride_stage(std::move(input), shard->index, shard->count);
  if (node.as<ConcatenateVerb>()) {
    std::vector<StagePtr> parts;
    std::vector<std::uint64_t> ends;
    parts.push_back(std::move(input));
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Node& part = *node.inputs[i];
      if (i > 0) parts.push_back(samples(part, first_id));
      first_id += id_space(part);
      const bool endless = end == kEndless || part.size.is_endless();
      end = endless ? kEndless : end + part.size.count();
      ends.push_back(end);
    }
    return concatenate_stage(std::move(parts), std::move(ends), node.spec);
  }
  if (node.as<EnumerateVerb>()) return enumerate_stage(std::move(input), node.spec);
  if (const auto* cache = node.as<CacheVerb>())
    return cache_stage(std::move(input), store_of(node, *cache, first_id),
                       rounds_below(node.input()));
  return input;  // take, prefetch and options leave the rows as they are
}

std::vector<Chain> Compiler::steps(const Node& node, std::uint64_t first_id) {
  std::vector<Chain> chains;
  if (node.as<BatchVerb>()) {
    chains.push_back({samples(node.input(), first_id), {}});
    return chains;
  }
  if (const auto* sequence = node.as<SequenceVerb>()) {
    StagePtr rows = pulled_stage(node.spec, IdSpace{{{first_id, sources_++}}});
    chains.push_back({std::move(rows), {}, sequence->source, first_id});
    return chains;
  }
  chains = steps(node.input(), first_id);
  if (const auto* map = node.as<MapVerb>()) {
    map_chains(node, *map, place_of(*map), chains);
  } else if (const auto* cache = node.as<CacheVerb>()) {
    PENSTOCK_CHECK_EQ(chains.size(), 1U);
    chains.front().samples =
        cache_stage(std::move(chains.front().samples), store_of(node, *cache, first_id),
                    rounds_below(node.input()));
  } else if (node.as<ConcatenateVerb>()) {
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      first_id += id_space(*node.inputs[i - 1]);
      for (Chain& chain : steps(*node.inputs[i], first_id)) chains.push_back(std::move(chain));
    }
  }
  return chains;
}

void Compiler::map_chains(const Node& node, const MapVerb& map, const MapPlace& place,
                          std::span<Chain> chains) {
  for (Chain& chain : chains) {
    // A row-wise op after batch is the same as before it, unless a whole one came between.
    if (map.whole || !chain.whole.empty()) {
      chain.whole.push_back({map.op, node.spec, place});
    } else {
      chain.samples = map_stage(std::move(chain.samples), map.op, node.spec, place);
    }
  }
}

/// Verbs that choose or order rows without looking at them.
FlowPtr Compiler::moved(const Node& node, FlowPtr input) const {
  if (const auto* take = node.as<TakeVerb>())
    return take->count ? take_flow(std::move(input), *take->count) : std::move(input);
  if (const auto* skip = node.as<SkipVerb>())
    return skip->count ? skip_flow(std::move(input), *skip->count) : take_flow(std::move(input), 0);
  if (const auto* shard = node.as<ShardVerb>())
    return shard_flow(std::move(input), shard->count, shard->index);
  if (const auto* shuffle = node.as<ShuffleVerb>()) {
    const StepShuffle order = order_of(*shuffle);
    return window_flow(std::move(input),
                       {shuffle->options.window.value(), order.seed, order.reshuffle});
  }
  if (const auto* repeat = node.as<RepeatVerb>())
    return repeat_flow(std::move(input), repeat->count.value_or(kEndlessRounds));
  return input;
}

StagePtr Compiler::predicate(const Flow& input, const std::shared_ptr<const Op>& op,
                             std::uint64_t seed, const Node& node) {
  return map_stage(pulled_stage(input.spec(), input.ids()), op, ElementSpec::single(Dtype::boolean),
                   place_of(*op, seed, describe_node(node)));
}

FlowPtr Compiler::expand(const Node& node, const ExpandVerb& verb, std::uint64_t first_id) {
  FlowPtr input = flow(node.input(), first_id);
  constexpr std::uint64_t kManyCursors = 256;
  if (verb.cycle > kManyCursors)
    notes_.push_back(
        fmt::format("{}: a state says where each of up to {} open datasets is, and holds 64 KB at "
                    "most; a smaller cycle makes it smaller",
                    describe_node(node), verb.cycle));
  Expansion expansion;
  expansion.cycle = verb.cycle;
  expansion.block = verb.block;
  expansion.title = fmt::format("{}#{}", describe_node(node), ops_++);
  expansion.open = [fn = verb.fn, word = verb.word, spec = node.spec, seed = options_.drawn_seed,
                    draws = options_.draws](const Sample& element) {
    const Dataset inner = fn(element).resolve();
    if (inner.batched())
      throw ConfigError(fmt::format("{}: the function returned batches", word), {},
                        "return samples, and batch what comes out");
    if (spec.known && inner.element_spec().known && inner.element_spec() != spec)
      throw ConfigError(fmt::format("{}: the function returned elements {}, declared was {}", word,
                                    inner.element_spec().text(), spec.text()));
    if (!draws && wants_drawn_seed(*inner.node()))
      throw ConfigError(
          fmt::format("{}: a shuffle in what the function returned wants a random seed; seeds are "
                      "drawn when a loader is made, for the shuffles that are there then",
                      word),
          {}, "give it a number, drawn outside of the function");
    return compile_flow(*inner.node(), {std::nullopt, seed, draws});
  };
  return expand_flow(std::move(input), std::move(expansion), node.spec, {sources_++, first_id});
}

FlowPtr Compiler::flow(const Node& node, std::uint64_t first_id) {
  if (!node.stream) {
    const std::uint64_t size = node.size.is_endless() ? kEndless : node.size.count();
    return indexed_flow(samples(node, first_id), size);
  }
  if (const auto* generator = node.as<GeneratorVerb>()) {
    if (!generator->fn.has_cursor)
      notes_.push_back(
          fmt::format("{}: going on from a state pulls it again from the start of the pass; save() "
                      "and restore() would save that",
                      describe_node(node)));
    return generator_flow(generator->fn, node.spec, {{sources_++, first_id}, describe_node(node)});
  }
  if (const auto* verb = node.as<ExpandVerb>()) return expand(node, *verb, first_id);
  if (node.as<RowsVerb>()) {
    FlowPtr input = flow(node.input(), first_id);
    return rows_flow(std::move(input), node.spec, {sources_++, first_id});
  }
  if (node.as<UnbatchVerb>()) {
    std::vector<Chain> chains;
    StepFlowPtr steps = step_flow(node.input(), first_id, std::nullopt, chains);
    std::vector<StagePtr> leaves;
    for (Chain& chain : chains) {
      PENSTOCK_CHECK(chain.whole.empty());
      leaves.push_back(std::move(chain.samples));
    }
    return unbatch_flow(std::move(steps), std::move(leaves), node.spec);
  }
  if (const auto* verb = node.as<ZipVerb>()) {
    std::vector<FlowPtr> parts;
    for (const NodePtr& input : node.inputs) parts.push_back(flow(*input, first_id));
    return zip_flow(std::move(parts), node.spec, verb->strict);
  }
  FlowPtr input = flow(node.input(), first_id);
  if (const auto* map = node.as<MapVerb>()) {
    StagePtr stage =
        map_stage(pulled_stage(input->spec(), input->ids()), map->op, node.spec, place_of(*map));
    return map_flow(std::move(input), std::move(stage));
  }
  if (const auto* filter = node.as<FilterVerb>()) {
    StagePtr judge = predicate(*input, filter->op, filter->seed, node);
    return filter_flow(std::move(input), std::move(judge));
  }
  if (const auto* until = node.as<TakeWhileVerb>()) {
    StagePtr judge = predicate(*input, until->op, until->seed, node);
    return take_while_flow(std::move(input), std::move(judge));
  }
  if (node.as<EnumerateVerb>()) return enumerate_flow(std::move(input), node.spec);
  if (node.as<ConcatenateVerb>()) {
    std::vector<FlowPtr> parts;
    parts.push_back(std::move(input));
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      first_id += id_space(*node.inputs[i - 1]);
      parts.push_back(flow(*node.inputs[i], first_id));
    }
    return concatenate_flow(std::move(parts), node.spec);
  }
  return moved(node, std::move(input));
}

/// As `flow`, but maps that nothing in the sequence looks at are left for after it: they run in
/// parallel, and not at all for what a replay drops.
FlowPtr Compiler::sequence(const Node& node, std::uint64_t first_id,
                           std::vector<Deferred>& deferred) {
  if (!node.stream) return flow(node, first_id);
  const auto* map = node.as<MapVerb>();
  const bool moves = node.as<TakeVerb>() || node.as<SkipVerb>() || node.as<ShardVerb>() ||
                     node.as<ShuffleVerb>() || node.as<RepeatVerb>() || node.as<PrefetchVerb>() ||
                     node.as<OptionsVerb>();
  if (map == nullptr && !moves) return flow(node, first_id);
  FlowPtr input = sequence(node.input(), first_id, deferred);
  if (moves) return moved(node, std::move(input));
  deferred.push_back({&node, place_of(*map)});
  return input;
}

namespace {

/// Throws for policies that need to know how many samples there will be.
TailRule stream_tail(const Node& batch, std::optional<Tail> tail) {
  const TailRule rule = groups_of(*batch.as<BatchVerb>(), batch.input().size, tail).tail;
  if (rule != TailRule::keep && rule != TailRule::drop && rule != TailRule::pad)
    throw ConfigError(
        fmt::format("batch: tail={} needs to know how many samples there are; a stream does not "
                    "say before it ends",
                    tail_name(tail_of(rule))),
        {}, "use tail short, pad or drop");
  return rule;
}

}  // namespace

/// Batches of a Sequence in a stream: asked for as they are pulled.
StepFlowPtr Compiler::sequence_steps(const Node& node, std::optional<Tail> tail,
                                     std::vector<Chain> made, std::vector<Chain>& chains) const {
  const auto first = static_cast<std::uint32_t>(chains.size());
  std::vector<SequenceLeaf> leaves;
  for (Chain& chain : made) {
    if (!chain.sequence)
      throw ConfigError("batches of a Sequence and of other data in one stream", {},
                        "unbatch both, and batch the result");
    leaves.push_back({chain.sequence, chain.first_id});
    chain.sequence = nullptr;
    chains.push_back(std::move(chain));
  }
  return sequence_steps_flow(std::move(leaves), steps_of(node, tail, options_.drawn_seed).steps,
                             first);
}

StepFlowPtr Compiler::step_flow(const Node& node, std::uint64_t first_id, std::optional<Tail> tail,
                                std::vector<Chain>& chains) {
  const std::size_t first = chains.size();
  if (!node.stream) {
    std::vector<StagePtr> leaves;
    std::vector<Chain> made = this->steps(node, first_id);
    const bool asked =
        std::ranges::any_of(made, [](const Chain& c) { return c.sequence != nullptr; });
    if (asked) return sequence_steps(node, tail, std::move(made), chains);
    for (Chain& chain : made) {
      chains.push_back(
          {pulled_stage(chain.samples->spec(), chain.samples->ids()), std::move(chain.whole)});
      leaves.push_back(std::move(chain.samples));
    }
    StepsOf shape = steps_of(node, tail, options_.drawn_seed);
    for (const Node* leaf : shape.leaves) (void)stream_tail(*leaf, tail);
    return indexed_steps_flow(std::move(leaves), std::move(shape.steps),
                              static_cast<std::uint32_t>(first));
  }
  if (const auto* batch = node.as<BatchVerb>()) {
    if (const auto warning = batch_of_batches(node.spec)) warnings_.push_back(*warning);
    std::vector<Deferred> deferred;
    FlowPtr input = sequence(node.input(), first_id, deferred);
    StagePtr stage = pulled_stage(input->spec(), input->ids());
    for (const Deferred& each : deferred)
      stage = map_stage(std::move(stage), each.map->as<MapVerb>()->op, each.map->spec, each.place);
    chains.push_back({std::move(stage), {}});
    return batch_flow(std::move(input),
                      {static_cast<std::uint32_t>(first), batch->size, stream_tail(node, tail)});
  }
  StepFlowPtr input = step_flow(node.input(), first_id, tail, chains);
  if (const auto* map = node.as<MapVerb>()) {
    map_chains(node, *map, place_of(*map), std::span(chains).subspan(first));
    return input;
  }
  if (const auto* take = node.as<TakeVerb>())
    return take->count ? take_steps_flow(std::move(input), *take->count) : std::move(input);
  if (const auto* skip = node.as<SkipVerb>())
    return skip->count ? skip_steps_flow(std::move(input), *skip->count)
                       : take_steps_flow(std::move(input), 0);
  if (const auto* shard = node.as<ShardVerb>())
    return shard_steps_flow(std::move(input), shard->count, shard->index);
  if (const auto* repeat = node.as<RepeatVerb>())
    return repeat_steps_flow(std::move(input), repeat->count.value_or(kEndlessRounds));
  if (node.as<ConcatenateVerb>()) {
    std::vector<StepFlowPtr> parts;
    parts.push_back(std::move(input));
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      first_id += id_space(*node.inputs[i - 1]);
      parts.push_back(step_flow(*node.inputs[i], first_id, tail, chains));
    }
    return concatenate_steps_flow(std::move(parts));
  }
  PENSTOCK_CHECK(node.as<PrefetchVerb>() || node.as<OptionsVerb>());
  return input;
}

}  // namespace

bool has_sequence(const Program& program) {
  return std::ranges::any_of(program.chains,
                             [](const Chain& chain) { return chain.sequence != nullptr; });
}

std::optional<std::string> batch_of_batches(const ElementSpec& element) {
  if (PENSTOCK_OFF("warn.batched_again")) return std::nullopt;
  if (!element.known || element.fields.size() < 2) return std::nullopt;
  const Shape& first = element.fields.front().shape;
  bool ranks_differ = false;
  for (const FieldSpec& field : element.fields) {
    if (field.shape.empty() || field.shape.front() != first.front() || first.front() < 2)
      return std::nullopt;
    ranks_differ = ranks_differ || field.shape.size() != first.size();
  }
  if (!ranks_differ) return std::nullopt;
  return fmt::format(
      "batch: each element of the stream ({}) looks like a batch of {} rows already; if it is one, "
      "unbatch() before batch()",
      element.text(), first.front());
}

bool wants_drawn_seed(const Node& root) {
  const auto* shuffle = root.as<ShuffleVerb>();
  if (shuffle != nullptr && shuffle->options.seed.drawn) return true;
  return std::ranges::any_of(root.inputs,
                             [](const NodePtr& input) { return wants_drawn_seed(*input); });
}

Program compile(const Node& root, const CompileOptions& options) {
  CompileOptions with_seed = options;
  with_seed.draws = options.draws || wants_drawn_seed(root);
  Compiler compiler(with_seed);
  if (root.stream) {
    std::vector<Chain> chains;
    StepFlowPtr stream = compiler.step_flow(root, 0, options.tail, chains);
    return {Steps::leaf(0, {}),    std::move(chains),       root.spec,
            compiler.random(),     compiler.take_notes(),   compiler.take_warnings(),
            compiler.masks(),      compiler.rows_at_once(), std::move(stream),
            compiler.long_blocks()};
  }
  std::vector<Chain> chains = compiler.steps(root, 0);
  StepsOf shape = steps_of(root, options.tail, options.drawn_seed);
  PENSTOCK_CHECK_EQ(chains.size(), shape.leaves.size());
  return {std::move(shape.steps), std::move(chains),       root.spec,
          compiler.random(),      compiler.take_notes(),   compiler.take_warnings(),
          compiler.masks(),       compiler.rows_at_once(), nullptr,
          compiler.long_blocks()};
}

FlowPtr compile_flow(const Node& root, const CompileOptions& options) {
  return Compiler(options).flow(root, 0);
}

StagePtr compile_samples(const Node& root, const CompileOptions& options) {
  return Compiler(options).samples(root, 0);
}

}  // namespace penstock
