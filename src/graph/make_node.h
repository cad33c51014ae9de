#pragma once
// How verbs add nodes: each new node is counted and checked against what a dataset may hold.

#include <memory>
#include <string>
#include <utility>

#include "graph/node.h"

namespace penstock {

/// Levels of nodes above each other. Every walk over a graph is a recursion, in any thread.
inline constexpr std::uint64_t kDepthMax = 500;
/// Nodes of a graph, where one that is used twice counts twice, as it does when it is compiled.
inline constexpr std::uint64_t kNodesMax = 200'000;

/// The dataset that ends with `node`. Throws ConfigError where the graph is too deep or too large.
Dataset make_node(Node node);
/// `make_node` for nodes that may have more elements, or samples in their steps, than can be
/// numbered.
Dataset make_counted(const std::string& word, Node node);
[[noreturn]] void refuse_count(const std::string& word, std::uint64_t count, const char* what);

/// A node with one input that keeps what its elements look like.
Node after(const Dataset& input, std::shared_ptr<const Verb> verb);

/// `make_node(after(input, make_shared<V>(arguments...)))`.
template <typename V, typename... Arguments>
Dataset add_verb(const Dataset& input, Arguments&&... arguments) {
  return make_node(after(input, std::make_shared<const V>(std::forward<Arguments>(arguments)...)));
}

void refuse_if_batched(const Dataset& dataset, const char* word, const std::string& remedy);

}  // namespace penstock
