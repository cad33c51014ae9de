#include "graph/make_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace penstock {

Dataset make_node(Node node) {
  node.depth = node.nodes = 1;
  for (const NodePtr& input : node.inputs) {
    node.depth = std::max(node.depth, input->depth + 1);
    node.nodes += input->nodes;  // each is at most kNodesMax
  }
  if (node.depth > kDepthMax)
    throw ConfigError(fmt::format("{}: the dataset would be {} verbs deep, {} is the limit",
                                  verb_word(node), node.depth, kDepthMax),
                      {}, "combine verbs: one map of one function, one skip(n)");
  if (node.nodes > kNodesMax)
    throw ConfigError(
        fmt::format("{}: the dataset would have {} nodes, {} is the limit (a dataset that is used "
                    "twice counts twice)",
                    verb_word(node), node.nodes, kNodesMax),
        {},
        "use one source instead of many: from_paths() or from_index(); repeat() instead of copies");
  return Dataset(std::make_shared<const Node>(std::move(node)));
}

void refuse_count(const std::string& word, std::uint64_t count, const char* what) {
  throw ConfigError(fmt::format("{}: {} {} are above 2^62", word, count, what), {},
                    "use repeat() for an endless dataset");
}

Dataset make_counted(const std::string& word, Node node) {
  constexpr std::uint64_t kCountMax = 1ULL << 62;
  if (node.size.is_counted()) {
    if (node.size.count() > kCountMax) refuse_count(word, node.size.count(), "elements");
    const std::uint64_t rows = node.batched ? rows_of(node) : 0;
    if (rows > kCountMax && rows != kUncounted) refuse_count(word, rows, "samples");
  }
  return make_node(std::move(node));
}

Node after(const Dataset& input, std::shared_ptr<const Verb> verb) {
  Node node;
  node.verb = std::move(verb);
  node.inputs = {input.node()};
  node.spec = input.element_spec();
  node.size = input.cardinality();
  node.batched = input.batched();
  node.stream = input.streamed();
  return node;
}

void refuse_if_batched(const Dataset& dataset, const char* word, const std::string& remedy) {
  if (dataset.batched())
    throw ConfigError(fmt::format("{}: these elements are already batches", word), {}, remedy);
}

}  // namespace penstock
