#pragma once
// The nodes of a dataset. A node holds a verb and what its elements look like; plan/ decides how it
// runs.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/verb.h"
#include "order/steps.h"
#include "penstock/dataset.h"

namespace penstock {

using NodePtr = std::shared_ptr<const Node>;

/// Immutable. `size` and `spec` are of the elements: samples, or the rows of batches once batched.
class Node {
 public:
  std::shared_ptr<const Verb> verb;
  std::vector<NodePtr> inputs;
  ElementSpec spec;
  Cardinality size = Cardinality::of(0);
  bool batched = false;
  bool stream = false;          // elements are numbered as they are pulled
  std::uint64_t depth = 1;      // levels of nodes, this one included
  std::uint64_t nodes = 1;      // of the graph that ends here, by every way to them
  std::uint64_t step_rows = 0;  // of a concatenate of batches: as Steps::rows counts

  [[nodiscard]] const Node& input() const { return *inputs.front(); }
  [[nodiscard]] Facts facts() const { return verb->facts(*this); }
  /// A batch node, or one that has batches from its start.
  [[nodiscard]] bool is_leaf() const { return facts().is_leaf; }
  /// How a batch node groups samples; nothing for any other node.
  [[nodiscard]] std::optional<Groups> groups(std::optional<Tail> tail) const {
    return verb->groups(*this, tail);
  }
  template <typename V>
  [[nodiscard]] const V* as() const {
    return dynamic_cast<const V*>(verb.get());
  }
};

/// The first node of the graph for which `matches(node)`, looking at a node before its inputs; null
/// where there is none. Does not look below nodes for which `stops(node)`.
template <typename Matches, typename Stops>
const Node* find_node(const Node& node, Matches matches, Stops stops) {
  if (matches(node)) return &node;
  if (stops(node)) return nullptr;
  for (const NodePtr& input : node.inputs)
    if (const Node* found = find_node(*input, matches, stops)) return found;
  return nullptr;
}
template <typename Matches>
const Node* find_node(const Node& node, Matches matches) {
  return find_node(node, matches, [](const Node&) { return false; });
}

/// The word users wrote, "shuffle"; and the node on one line, "shuffle(seed=7)".
std::string verb_word(const Node& node);
std::string describe_node(const Node& node);

/// True when some select has not been resolved.
bool is_unresolved(const Node& root);
/// True when some shuffle wants a seed to be drawn.
bool wants_drawn_seed(const Node& root);
/// True when some batches of `batched` come from a Sequence.
bool has_sequence(const Node& batched);

/// The steps of a batched node, and its batch nodes by leaf number. `drawn_seed` stands for seeds
/// that are drawn.
struct StepsOf {
  Steps steps;
  std::vector<const Node*> leaves;
};
StepsOf steps_of(const Node& batched, std::optional<Tail> tail, std::uint64_t drawn_seed);
/// Samples in the steps of a batched node, as Steps::rows counts.
std::uint64_t rows_of(const Node& batched);

/// What the order digest is computed from, one line per node; batch size and tail only where steps
/// are counted. `tail` applies where a batch names none.
std::vector<std::string> order_lines(const Node& root, std::optional<Tail> tail);
/// Adds the lines of all inputs of `node`.
void add_order_of_inputs(const Node& node, const Counting& counting,
                         std::vector<std::string>& lines);
Digests digests_of(const Node& root, std::optional<Tail> tail);
/// True when a state of this dataset loads at another batch size: one batch node, and nothing but
/// repeats, caches and maps after it.
bool batch_size_is_free(const Node& root);

/// Options that with_options and prefetch set; the outermost wins.
struct Hints {
  std::string name;
  std::optional<unsigned> threads;
  std::optional<std::uint64_t> lookahead_bytes;
  std::uint64_t prefetch_steps = 0;
};
Hints hints_of(const Node& root);

}  // namespace penstock
