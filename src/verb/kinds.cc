#include "verb/kinds.h"

#include <fmt/format.h>

namespace penstock {
namespace {

/// A call that the verb's Dataset function makes impossible.
[[noreturn]] void unreachable(const Node& node, const char* question) {
  throw InternalError(fmt::format("{}: {} was called", describe_node(node), question));
}

/// The promise of the input; not exact if the number of elements differs.
Promise promise_of_input(const Node& node, const Delivery& delivery) {
  Promise promise = promise_of(node.input(), delivery);
  if (node.size != node.input().size) promise.all = false;
  return promise;
}

}  // namespace

void Hint::add_order(const Node& node, const Counting& counting,
                     std::vector<std::string>& lines) const {
  add_order_of_inputs(node, counting, lines);
}

Dataset Hint::apply(const Node& node, const std::vector<Dataset>& inputs) const {
  return make_node(after(inputs.front(), node.verb));
}

StagePtr Hint::samples(Compiler& compiler, const Node& node, std::uint64_t first_id) const {
  return compiler.samples(node.input(), first_id);
}

FlowPtr Hint::flow(Compiler& compiler, const Node& node, std::uint64_t first_id) const {
  return compiler.flow(node.input(), first_id);
}

FlowPtr Hint::flow_before_maps(Compiler& compiler, const Node& node, std::uint64_t first_id,
                               std::vector<Deferred>& deferred) const {
  return compiler.flow_before_maps(node.input(), first_id, deferred);
}

std::vector<LeafProgram> Hint::chains(Compiler& compiler, const Node& node,
                                      std::uint64_t first_id) const {
  return compiler.chains(node.input(), first_id);
}

StepFlowPtr Hint::step_flow(Compiler& compiler, const Node& node, std::uint64_t first_id,
                            std::optional<Tail> tail, std::vector<LeafProgram>& chains) const {
  return compiler.step_flow(node.input(), first_id, tail, chains);
}

Steps Hint::steps(const Node& node, StepsWalk& walk) const {
  return walk.of(node.input());
}

Promise Hint::promise(const Node& node, const Delivery& delivery) const {
  return promise_of_input(node, delivery);
}

void Move::add_order(const Node& node, const Counting& counting,
                     std::vector<std::string>& lines) const {
  add_order_of_inputs(node, counting, lines);
  lines.push_back(words().line);
}

StagePtr Move::samples(Compiler& compiler, const Node& node, std::uint64_t first_id) const {
  const Cardinality& size = node.input().size;
  return move(Hint::samples(compiler, node, first_id), size.is_endless() ? kEndless : size.count(),
              compiler);
}

FlowPtr Move::flow(Compiler& compiler, const Node& node, std::uint64_t first_id) const {
  return move(Hint::flow(compiler, node, first_id), compiler);
}

FlowPtr Move::flow_before_maps(Compiler& compiler, const Node& node, std::uint64_t first_id,
                               std::vector<Deferred>& deferred) const {
  return move(Hint::flow_before_maps(compiler, node, first_id, deferred), compiler);
}

StepFlowPtr Move::step_flow(Compiler& compiler, const Node& node, std::uint64_t first_id,
                            std::optional<Tail> tail, std::vector<LeafProgram>& chains) const {
  return move(Hint::step_flow(compiler, node, first_id, tail, chains));
}

void OnSamples::add_order(const Node& node, const Counting& counting,
                          std::vector<std::string>& lines) const {
  add_order_of_inputs(node, counting, lines);
  lines.push_back(words().line);
}

StagePtr OnSamples::samples(Compiler&, const Node& node, std::uint64_t) const {
  unreachable(node, "samples");
}

FlowPtr OnSamples::flow(Compiler&, const Node& node, std::uint64_t) const {
  unreachable(node, "flow");
}

std::vector<LeafProgram> OnSamples::chains(Compiler&, const Node& node, std::uint64_t) const {
  unreachable(node, "chains");
}

StepFlowPtr OnSamples::step_flow(Compiler&, const Node& node, std::uint64_t, std::optional<Tail>,
                                 std::vector<LeafProgram>&) const {
  unreachable(node, "step_flow");
}

Steps OnSamples::steps(const Node& node, StepsWalk&) const {
  unreachable(node, "steps");
}

Promise OnSamples::promise(const Node& node, const Delivery& delivery) const {
  return promise_of_input(node, delivery);
}

void Origin::add_values(const Node& node, Digest& digest) const {
  digest.add(node.spec.text());
}

Dataset Origin::apply(const Node& node, const std::vector<Dataset>&) const {
  return Dataset(std::make_shared<const Node>(node));
}

std::string number_or(const std::optional<std::uint64_t>& number, const char* otherwise) {
  return number ? fmt::format("{}", *number) : otherwise;
}

std::optional<std::uint64_t> count_or_all(const char* word, std::int64_t count) {
  if (count < -1)
    throw ConfigError(fmt::format("{}: count must be 0 or more, got {}", word, count), {},
                      fmt::format("{}(-1) means {}", word,
                                  std::string_view(word) == "repeat" ? "forever" : "all"));
  if (count == -1) return std::nullopt;
  return static_cast<std::uint64_t>(count);
}

std::int64_t written_count(const std::optional<std::uint64_t>& count) {
  return count ? static_cast<std::int64_t>(*count) : -1;
}

std::string required_name(const std::string& word, const std::string& name) {
  if (name.empty())
    throw ConfigError(fmt::format("{}: a function is serialized by name", word), {},
                      "give it one: {.name = ...}");
  return name;
}

}  // namespace penstock
