#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/fault.h"
#include "graph/node.h"
#include "graph/tail.h"

namespace penstock {
namespace {

Steps walk(const Node& node, std::optional<Tail> tail, std::uint64_t drawn_seed,
           std::vector<const Node*>& leaves) {
  if (const auto* batch = node.as<BatchVerb>()) {
    leaves.push_back(&node);
    return Steps::leaf(static_cast<std::uint32_t>(leaves.size() - 1),
                       groups_of(*batch, node.input().size, tail));
  }
  if (const auto* sequence = node.as<SequenceVerb>()) {
    // A batch of it is one element; how many rows that has shows when it is there.
    leaves.push_back(&node);
    return Steps::leaf(static_cast<std::uint32_t>(leaves.size() - 1),
                       {sequence->source->size(), 1, TailRule::keep});
  }
  const Steps input = walk(node.input(), tail, drawn_seed, leaves);
  if (const auto* repeat = node.as<RepeatVerb>())
    return input.repeated(repeat->count.value_or(kEndless));
  if (const auto* take = node.as<TakeVerb>())
    return input.sliced(0, take->count.value_or(kEndless));
  if (const auto* skip = node.as<SkipVerb>())
    return skip->count ? input.sliced(*skip->count, kEndless) : input.sliced(0, 0);
  if (const auto* shard = node.as<ShardVerb>()) return input.sharded(shard->count, shard->index);
  if (const auto* shuffle = node.as<ShuffleVerb>()) {
    const Seed& seed = shuffle->options.seed;
    return input.shuffled({seed.drawn ? drawn_seed : seed.value,
                           shuffle->options.reshuffle_each_epoch && !PENSTOCK_OFF("shuffle.anew")});
  }
  if (node.as<ConcatenateVerb>()) {
    std::vector<Steps> parts{input};
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      parts.push_back(walk(*node.inputs[i], tail, drawn_seed, leaves));
    return Steps::concatenated(std::move(parts));
  }
  return input;
}

}  // namespace

Groups groups_of(const BatchVerb& batch, const Cardinality& samples, std::optional<Tail> tail) {
  const Tail unnamed = PENSTOCK_OFF("tail.short") ? Tail::drop : Tail::short_;
  const Tail policy = batch.tail.value_or(tail.value_or(unnamed));
  return {samples.is_counted() ? samples.count() : kEndless, batch.size, rule_of(policy)};
}

StepsOf steps_of(const Node& batched, std::optional<Tail> tail, std::uint64_t drawn_seed) {
  PENSTOCK_CHECK(batched.batched);
  std::vector<const Node*> leaves;
  Steps steps = walk(batched, tail, drawn_seed, leaves);
  return {std::move(steps), std::move(leaves)};
}

std::uint64_t rows_of(const Node& batched) {
  // Parts are added one at a time, perhaps thousands of them; each is looked at once.
  if (batched.as<ConcatenateVerb>()) return batched.step_rows;
  return steps_of(batched, std::nullopt, 0).steps.rows();
}

}  // namespace penstock
