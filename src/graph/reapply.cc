// tested in src/feed/select_test.cc
#include "graph/make_node.h"

namespace penstock {

Dataset reapply(const Node& node, const std::vector<Dataset>& inputs) {
  const Dataset& input = inputs.front();
  const auto count = [](const std::optional<std::uint64_t>& number) {
    return number ? static_cast<std::int64_t>(*number) : -1;
  };
  if (const auto* verb = node.as<MapVerb>()) return add_map(input, verb->op, verb->seed);
  if (const auto* verb = node.as<FilterVerb>()) return add_filter(input, *verb);
  if (const auto* verb = node.as<TakeWhileVerb>()) return add_take_while(input, *verb);
  if (const auto* verb = node.as<SelectVerb>()) return add_select(input, *verb);
  if (const auto* verb = node.as<ExpandVerb>()) return add_expand(input, *verb, node.spec);
  if (const auto* verb = node.as<BatchVerb>()) {
    BatchOptions options;
    options.tail = verb->tail;
    return input.batch(static_cast<std::int64_t>(verb->size), options);
  }
  if (node.as<UnbatchVerb>() || node.as<RowsVerb>()) return input.unbatch();
  if (const auto* verb = node.as<ShuffleVerb>()) return input.shuffle(verb->options);
  if (const auto* verb = node.as<RepeatVerb>()) return input.repeat(count(verb->count));
  if (const auto* verb = node.as<TakeVerb>()) return input.take(count(verb->count));
  if (const auto* verb = node.as<SkipVerb>()) return input.skip(count(verb->count));
  if (const auto* verb = node.as<ShardVerb>())
    return input.shard(static_cast<std::int64_t>(verb->count),
                       static_cast<std::int64_t>(verb->index));
  if (node.as<ConcatenateVerb>()) {
    Dataset joined = input;
    for (std::size_t i = 1; i < inputs.size(); ++i) joined = joined.concatenate(inputs[i]);
    return joined;
  }
  if (const auto* verb = node.as<ZipVerb>()) return Dataset::zip(inputs, {verb->strict});
  if (node.as<EnumerateVerb>()) return input.enumerate();
  // A cache keeps what it holds, hints are hints.
  Node same = node;
  same.inputs = {input.node()};
  same.size = input.cardinality();
  return make_node(std::move(same));
}

}  // namespace penstock
