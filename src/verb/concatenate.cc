// tested in src/graph/dataset_test.cc
#include "verb/concatenate.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/routed_stage.h"
#include "plan/series_flow.h"
#include "verb/bucket_padding.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

/// Two inputs or more. The buckets of one dataset share the ids of its samples.
class Concatenate final : public Verb {
 public:
  explicit Concatenate(bool buckets) : buckets_(buckets) {}
  [[nodiscard]] bool buckets() const { return buckets_; }
  [[nodiscard]] Words words() const override {
    return buckets_ ? Words{"buckets", "buckets()"} : Words{"concatenate", "concatenate()"};
  }
  [[nodiscard]] Facts facts(const Node&) const override {
    return {.counts_steps = true, .appends = true};
  }
  /// One line per added side, as if each were a separate node.
  void add_order(const Node& node, const Counting& counting,
                 std::vector<std::string>& lines) const override {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      node.inputs[i]->verb->add_order(*node.inputs[i], counting, lines);
      if (i > 1) lines.push_back(words().line);
    }
    lines.push_back(words().line);
  }
  void add_values(const Node&, Digest&) const override {}
  [[nodiscard]] Json arguments() const override { return Json::object(); }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return join_all(inputs, buckets_);
  }
  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override {
    std::vector<StagePtr> parts;
    std::vector<std::uint64_t> ends;  // kEndless from the first endless part on
    for_parts(node, first_id, [&](const Node& part, std::uint64_t part_first_id) {
      parts.push_back(compiler.samples(part, part_first_id));
      const std::uint64_t before = ends.empty() ? 0 : ends.back();
      const bool endless = before == kEndless || part.size.is_endless();
      ends.push_back(endless ? kEndless : before + part.size.count());
    });
    return routed_stage(
        std::move(parts),
        [ends = std::move(ends)](const Ask& ask, std::uint64_t position) {
          if (position < ends.front()) return Target{0, ask.turn, position};
          const auto found = std::ranges::upper_bound(ends, position);
          return Target{static_cast<std::size_t>(found - ends.begin()), ask.turn,
                        position - *(found - 1)};
        },
        node.spec);
  }
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node& node,
                             std::uint64_t first_id) const override {
    Series<OverRows> series;
    for_parts(node, first_id, [&](const Node& part, std::uint64_t part_first_id) {
      series.parts.push_back(compiler.flow(part, part_first_id));
    });
    return series_flow(std::move(series), node.spec);
  }
  [[nodiscard]] std::vector<LeafProgram> chains(Compiler& compiler, const Node& node,
                                                std::uint64_t first_id) const override {
    std::vector<LeafProgram> chains;
    if (buckets_)
      if (auto sentence = padding_sentence(node, compiler.options()))
        compiler.note(std::move(*sentence));
    for_parts(node, first_id, [&](const Node& part, std::uint64_t part_first_id) {
      for (LeafProgram& chain : compiler.chains(part, part_first_id))
        chains.push_back(std::move(chain));
    });
    return chains;
  }
  [[nodiscard]] StepFlowPtr step_flow(Compiler& compiler, const Node& node, std::uint64_t first_id,
                                      std::optional<Tail> tail,
                                      std::vector<LeafProgram>& chains) const override {
    Series<OverSteps> series;
    for_parts(node, first_id, [&](const Node& part, std::uint64_t part_first_id) {
      series.parts.push_back(compiler.step_flow(part, part_first_id, tail, chains));
    });
    return series_flow(std::move(series));
  }
  [[nodiscard]] Steps steps(const Node& node, StepsWalk& walk) const override {
    std::vector<Steps> parts;
    for (const NodePtr& input : node.inputs) parts.push_back(walk.of(*input));
    return Steps::concatenated(std::move(parts));
  }
  [[nodiscard]] Promise promise(const Node& node, const Delivery& delivery) const override {
    Promise promise = promise_of(node.input(), delivery);
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      const Promise next = promise_of(*node.inputs[i], delivery);
      if (buckets_) {
        promise.dropped += next.dropped;
      } else {
        promise.append(next);
      }
    }
    return promise;
  }
  [[nodiscard]] std::uint64_t id_space(const Node& node) const override {
    if (buckets_) return node.input().verb->id_space(node.input());
    std::uint64_t ids = 0;
    for (const NodePtr& input : node.inputs) ids += input->verb->id_space(*input);
    return ids;
  }

 private:
  /// Calls `body(part, first id)` for each input; their ids follow each other, except of buckets.
  template <typename Body>
  void for_parts(const Node& node, std::uint64_t first_id, Body body) const {
    for (const NodePtr& part : node.inputs) {
      body(*part, first_id);
      if (!buckets_) first_id += part->verb->id_space(*part);
    }
  }

  const bool buckets_;
};

/// True if a concatenate with `node` adds the inputs of `node` instead.
bool is_flattened(const Node& node, bool buckets) {
  const auto* const other = node.as<Concatenate>();
  return other != nullptr && other->buckets() == buckets;
}

/// Elements after an endless side are never reached, and a side of unknown length may be endless:
/// in both cases the result is treated as endless.
Cardinality joined_size(const Cardinality& left, const Cardinality& right) {
  if (left.is_endless() || right.is_endless()) return Cardinality::endless();
  if (left.is_unknown()) return left;
  if (right.is_unknown()) return right;
  return Cardinality::of(left.count() + right.count());
}

}  // namespace

namespace {

Dataset join_two(const Dataset& first, const Dataset& other, bool buckets) {
  if (first.batched() != other.batched())
    throw ConfigError("concatenate: one side is batched, the other is not", {},
                      "batch both, or batch the result");
  const ElementSpec& left = first.element_spec();
  const ElementSpec& right = other.element_spec();
  if (left.known && right.known && left != right)
    throw ConfigError(
        fmt::format("concatenate: the elements are {} on one side and {} on the other", left.text(),
                    right.text()));
  Node node = after(first, std::make_shared<const Concatenate>(buckets));
  // A chain of concatenates becomes one node: there may be one dataset per file, thousands of them.
  node.inputs.clear();
  for (const Dataset* side : {&first, &other}) {
    const Node& added = *side->node();
    if (is_flattened(added, buckets)) {
      node.inputs.insert(node.inputs.end(), added.inputs.begin(), added.inputs.end());
    } else {
      node.inputs.push_back(side->node());
    }
  }
  if (!right.known) node.spec = right;
  node.stream = first.streamed() || other.streamed();
  node.size = joined_size(first.cardinality(), other.cardinality());
  if (first.batched() && node.size.is_counted()) {
    node.step_rows = rows_of(*first.node());
    const std::uint64_t more = rows_of(*other.node());
    const bool counted = node.step_rows != kUncounted && more != kUncounted;
    node.step_rows = counted ? node.step_rows + more : kUncounted;
  }
  return make_counted("concatenate", std::move(node));
}

}  // namespace

Dataset join_all(const std::vector<Dataset>& parts, bool buckets) {
  Dataset joined = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) joined = join_two(joined, parts[i], buckets);
  return joined;
}

Dataset Dataset::concatenate(const Dataset& other) const {
  return join_two(*this, other, false);
}

Dataset parse_concatenate(const Parsed& parsed) {
  (void)parsed.inputs.at(1);
  return join_all(parsed.inputs, false);
}

Dataset parse_buckets(const Parsed& parsed) {
  (void)parsed.inputs.at(1);
  return join_all(parsed.inputs, true);
}

}  // namespace penstock
