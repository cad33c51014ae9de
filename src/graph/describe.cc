// Descriptions of nodes, the digests computed from them, and queries about a whole graph.
#include <fmt/format.h>

#include "base/digest.h"
#include "graph/node.h"

namespace penstock {
namespace {

void add_values(const Node& node, Digest& digest) {
  for (const NodePtr& input : node.inputs) add_values(*input, digest);
  node.verb->add_values(node, digest);
}

void list(const Node& node, int depth, std::string& text) {
  for (const NodePtr& input : node.inputs)
    list(*input, depth + (node.inputs.size() > 1 ? 1 : 0), text);
  const std::string unit = node.batched ? "steps" : "samples";
  const std::string size = node.stream              ? fmt::format("a stream of {}", unit)
                           : node.size.is_counted() ? fmt::format("{} {}", node.size.count(), unit)
                                                    : node.size.text();
  const std::string progress = node.verb->progress(node);
  text += fmt::format("{:{}}{}  [{} of {}]{}{}\n", "", depth * 2, describe_node(node), size,
                      node.spec.text(), progress.empty() ? "" : ": ", progress);
}

bool is_leaf(const Node& node) {
  return node.is_leaf();
}

}  // namespace

std::string verb_word(const Node& node) {
  return node.verb->words().word;
}
std::string describe_node(const Node& node) {
  return node.verb->words().line;
}

bool is_unresolved(const Node& root) {
  return find_node(root, [](const Node& node) { return node.facts().unresolved; }) != nullptr;
}

bool wants_drawn_seed(const Node& root) {
  return find_node(root, [](const Node& node) { return node.facts().draws_seed; }) != nullptr;
}

bool has_sequence(const Node& batched) {
  const auto is_sequence = [](const Node& node) {
    return node.is_leaf() && !node.groups(std::nullopt);
  };
  return find_node(batched, is_sequence, is_leaf) != nullptr;
}

bool batch_size_is_free(const Node& root) {
  if (!root.batched || root.facts().counts_steps) return false;
  return root.is_leaf() || batch_size_is_free(root.input());
}

void add_order_of_inputs(const Node& node, const Counting& counting,
                         std::vector<std::string>& lines) {
  for (const NodePtr& input : node.inputs) input->verb->add_order(*input, counting, lines);
}

std::vector<std::string> order_lines(const Node& root, std::optional<Tail> tail) {
  std::vector<std::string> lines;
  root.verb->add_order(root, {root.batched && !batch_size_is_free(root), tail}, lines);
  return lines;
}

Digests digests_of(const Node& root, std::optional<Tail> tail) {
  Digest order;
  for (const std::string& line : order_lines(root, tail)) order.add(line);
  Digest values;
  add_values(root, values);
  values.add(PENSTOCK_VERSION);
  return {order.text(), values.text()};
}

Hints hints_of(const Node& root) {
  Hints hints;
  if (!root.inputs.empty()) hints = hints_of(root.input());
  root.verb->add_hints(hints);
  return hints;
}

std::string Dataset::describe() const {
  std::string text;
  list(*node_, 0, text);
  return text;
}

}  // namespace penstock
