#pragma once
// How verbs add nodes. Each new node is counted and checked against the limits of a dataset.

#include <memory>
#include <string>
#include <utility>

#include "graph/node.h"

namespace penstock {

/// The maximum depth of a graph. Every walk over a graph recurses, on any thread.
inline constexpr std::uint64_t kDepthMax = 500;
/// The maximum number of nodes. A node that is used twice counts twice, since it is compiled twice.
inline constexpr std::uint64_t kNodesMax = 200'000;

/// Returns the dataset that ends with `node`. Throws ConfigError if the graph is too deep or too
/// large.
Dataset make_node(Node node);
/// Like `make_node`. Also throws ConfigError for more than 2^62 elements, or samples in steps.
Dataset make_counted(const std::string& word, Node node);
[[noreturn]] void refuse_count(const std::string& word, std::uint64_t count, const char* what);

/// A node with one input whose elements have the same spec as those of the input.
Node after(const Dataset& input, std::shared_ptr<const Verb> verb);

/// `make_node(after(input, make_shared<V>(arguments...)))`.
template <typename V, typename... Arguments>
Dataset add_verb(const Dataset& input, Arguments&&... arguments) {
  return make_node(after(input, std::make_shared<const V>(std::forward<Arguments>(arguments)...)));
}

void refuse_if_batched(const Dataset& dataset, const char* word, const std::string& remedy);

}  // namespace penstock
