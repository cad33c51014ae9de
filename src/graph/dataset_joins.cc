// The verbs of Dataset that join several: concatenate, zip.
// tested in src/graph/dataset_test.cc and src/graph/make_node_test.cc
#include <fmt/format.h>

#include <utility>

#include "graph/make_node.h"

namespace penstock {
namespace {

/// What comes after an endless side is never reached, and what follows one of unknown length may
/// be endless: either way the whole is.
Cardinality joined_size(const Cardinality& left, const Cardinality& right) {
  if (left.is_endless() || right.is_endless()) return Cardinality::endless();
  if (left.is_unknown()) return left;
  if (right.is_unknown()) return right;
  return Cardinality::of(left.count() + right.count());
}

}  // namespace

Dataset Dataset::concatenate(const Dataset& other) const {
  if (batched() != other.batched())
    throw ConfigError("concatenate: one side is batched, the other is not", {},
                      "batch both, or batch the result");
  const ElementSpec& left = element_spec();
  const ElementSpec& right = other.element_spec();
  if (left.known && right.known && left != right)
    throw ConfigError(
        fmt::format("concatenate: the elements are {} on one side and {} on the other", left.text(),
                    right.text()));
  Node node = after(*this, ConcatenateVerb{});
  // A chain of them is one node: there may be one dataset for each of thousands of files.
  node.inputs.clear();
  for (const Dataset* side : {this, &other}) {
    const Node& added = *side->node();
    if (added.as<ConcatenateVerb>()) {
      node.inputs.insert(node.inputs.end(), added.inputs.begin(), added.inputs.end());
    } else {
      node.inputs.push_back(side->node());
    }
  }
  if (!right.known) node.spec = right;
  node.stream = streamed() || other.streamed();
  node.size = joined_size(cardinality(), other.cardinality());
  if (batched() && node.size.is_counted()) {
    node.step_rows = rows_of(*node_);
    const std::uint64_t more = rows_of(*other.node());
    const bool counted = node.step_rows != kUncounted && more != kUncounted;
    node.step_rows = counted ? node.step_rows + more : kUncounted;
  }
  return make_counted("concatenate", std::move(node));
}

Dataset Dataset::zip(const std::vector<Dataset>& parts, const ZipOptions& options) {
  if (parts.empty()) throw ConfigError("zip: there is nothing to zip");
  Node node;
  node.verb = ZipVerb{options.strict};
  std::vector<ElementSpec> specs;
  node.size = parts.front().cardinality();
  for (const Dataset& part : parts) {
    refuse_if_batched(part, "zip", "zip the samples, then batch");
    node.stream = node.stream || part.streamed();
    if (options.strict && part.cardinality() != parts.front().cardinality() &&
        !part.cardinality().is_unknown() && !parts.front().cardinality().is_unknown())
      throw ConfigError("zip: the parts have different lengths and strict was asked for");
    specs.push_back(part.element_spec());
    node.inputs.push_back(part.node());
    if (!part.cardinality().is_counted()) continue;
    if (!node.size.is_counted() || part.cardinality().count() < node.size.count())
      node.size = part.cardinality();
  }
  node.spec = ElementSpec::tuple(specs);
  for (const Dataset& part : parts)
    if (part.cardinality().is_unknown()) node.size = part.cardinality();
  return make_node(std::move(node));
}

}  // namespace penstock
