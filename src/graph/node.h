#pragma once
// The nodes of a dataset. A node holds a verb and the spec of its elements; plan/ decides how it
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

/// Immutable. `size` and `spec` describe the elements: samples, or rows of batches after a batch.
class Node {
 public:
  std::shared_ptr<const Verb> verb;
  std::vector<NodePtr> inputs;
  ElementSpec spec;
  Cardinality size = Cardinality::of(0);
  bool batched = false;
  bool stream = false;          // elements are numbered as they are pulled
  std::uint64_t depth = 1;      // levels of nodes, including this one
  std::uint64_t nodes = 1;      // in the graph that ends here; a node counts once per path
  std::uint64_t step_rows = 0;  // for a concatenate of batches: see Steps::rows

  [[nodiscard]] const Node& input() const { return *inputs.front(); }
  [[nodiscard]] Facts facts() const { return verb->facts(*this); }
  /// True for a batch node and for a source of batches.
  [[nodiscard]] bool is_leaf() const { return facts().is_leaf; }
  /// How a batch node groups samples; null for any other node.
  [[nodiscard]] std::optional<Groups> groups(std::optional<Tail> tail) const {
    return verb->groups(*this, tail);
  }
  template <typename V>
  [[nodiscard]] const V* as() const {
    return dynamic_cast<const V*>(verb.get());
  }
};

/// Returns the first node of the graph for which `matches(node)` is true, or null. Visits a node
/// before its inputs. Does not visit inputs of nodes for which `stops(node)` is true.
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
/// True when some shuffle has a random seed.
bool wants_drawn_seed(const Node& root);
/// True when some batches of `batched` come from a Sequence.
bool has_sequence(const Node& batched);

/// The steps of a batched node, and its batch nodes by leaf number. `drawn_seed` replaces random
/// seeds.
struct StepsOf {
  Steps steps;
  std::vector<const Node*> leaves;
};
StepsOf steps_of(const Node& batched, std::optional<Tail> tail, std::uint64_t drawn_seed);
/// Samples in the steps of a batched node: see Steps::rows.
std::uint64_t rows_of(const Node& batched);

/// The lines that the order digest is computed from, one per node; batch size and tail only where
/// steps are counted. `tail` applies to a batch without one.
std::vector<std::string> order_lines(const Node& root, std::optional<Tail> tail);
/// Adds the lines of all inputs of `node`.
void add_order_of_inputs(const Node& node, const Counting& counting,
                         std::vector<std::string>& lines);
Digests digests_of(const Node& root, std::optional<Tail> tail);
/// True if a state of this dataset loads at another batch size: it has one batch node, followed
/// only by repeats, caches and maps.
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
