#include "plan/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "plan/stages.h"

namespace penstock {
namespace {

/// Numbers of the samples that `node` can refer to: where the ids after it begin.
std::uint64_t id_space(const Node& node) {
  if (const auto* source = node.as<SourceVerb>()) return source->source->size();
  if (node.as<ConcatenateVerb>()) return id_space(*node.inputs[0]) + id_space(*node.inputs[1]);
  return id_space(node.input());
}

/// Rounds of all repeats below, combined as Turn combines them.
std::uint64_t rounds_below(const Node& node) {
  if (node.as<SourceVerb>()) return 1;
  const std::uint64_t below = rounds_below(node.input());
  if (const auto* repeat = node.as<RepeatVerb>())
    return below * repeat->count.value_or(kEndlessRounds);
  if (node.as<ConcatenateVerb>()) return std::max(below, rounds_below(*node.inputs[1]));
  return below;
}

/// Walks the graph once, inputs first, and numbers sources and random ops as it meets them.
class Compiler {
 public:
  explicit Compiler(const CompileOptions& options) : options_(options) {}

  StagePtr samples(const Node& node, std::uint64_t first_id);
  std::vector<Chain> steps(const Node& node, std::uint64_t first_id);
  [[nodiscard]] bool random() const { return random_ops_ > 0; }
  std::vector<std::string> take_notes() { return std::move(notes_); }

 private:
  [[nodiscard]] StepShuffle order_of(const ShuffleVerb& verb) const {
    const Seed& seed = verb.options.seed;
    return {seed.drawn ? options_.drawn_seed : seed.value, verb.options.reshuffle_each_epoch};
  }
  StagePtr zip(const Node& node, std::uint64_t first_id);
  StagePtr unbatch(const Node& node, std::uint64_t first_id);
  MapPlace place_of(const MapVerb& map) {
    MapPlace place{fmt::format("{}#{}", map.op->describe(), ops_++), map.seed, random_ops_};
    if (map.op->random()) ++random_ops_;
    return place;
  }
  [[nodiscard]] std::shared_ptr<RowStore> store_of(const Node& node, const CacheVerb& cache,
                                                   std::uint64_t first_id) const {
    // A drawn seed makes other rows for each loader, so those cannot share.
    if (wants_drawn_seed(node)) return std::make_shared<RowStore>(cache.bytes_max);
    return cache.stores->at({first_id, sources_, random_ops_});
  }

  CompileOptions options_;
  std::uint32_t sources_ = 0;
  std::uint64_t ops_ = 0;
  std::uint64_t random_ops_ = 0;
  std::vector<std::string> notes_;
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
    const std::uint64_t left = input_size.is_endless() ? kEndless : input_size.count();
    StagePtr right = samples(*node.inputs[1], first_id + id_space(*node.inputs[0]));
    return concatenate_stage(std::move(input), left, std::move(right), node.spec);
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
  chains = steps(node.input(), first_id);
  if (const auto* map = node.as<MapVerb>()) {
    const MapPlace place = place_of(*map);
    for (Chain& chain : chains) {
      // A row-wise op after batch is the same as before it, unless a whole one came between.
      if (map->whole || !chain.whole.empty()) {
        chain.whole.push_back({map->op, node.spec, place.title});
      } else {
        chain.samples = map_stage(std::move(chain.samples), map->op, node.spec, place);
      }
    }
  } else if (const auto* cache = node.as<CacheVerb>()) {
    PENSTOCK_CHECK_EQ(chains.size(), 1U);
    chains.front().samples =
        cache_stage(std::move(chains.front().samples), store_of(node, *cache, first_id),
                    rounds_below(node.input()));
  } else if (node.as<ConcatenateVerb>()) {
    for (Chain& chain : steps(*node.inputs[1], first_id + id_space(*node.inputs[0])))
      chains.push_back(std::move(chain));
  }
  return chains;
}

}  // namespace

bool wants_drawn_seed(const Node& root) {
  const auto* shuffle = root.as<ShuffleVerb>();
  if (shuffle != nullptr && shuffle->options.seed.drawn) return true;
  return std::ranges::any_of(root.inputs,
                             [](const NodePtr& input) { return wants_drawn_seed(*input); });
}

Program compile(const Node& root, const CompileOptions& options) {
  Compiler compiler(options);
  std::vector<Chain> chains = compiler.steps(root, 0);
  StepsOf shape = steps_of(root, options.tail, options.drawn_seed);
  PENSTOCK_CHECK_EQ(chains.size(), shape.leaves.size());
  return {std::move(shape.steps), std::move(chains), root.spec, compiler.random(),
          compiler.take_notes()};
}

StagePtr compile_samples(const Node& root, const CompileOptions& options) {
  return Compiler(options).samples(root, 0);
}

}  // namespace penstock
