// The rows of steps, and the rows of elements that contain several.
#include <fmt/format.h>

#include "base/check.h"
#include "plan/buffered_cursor.h"
#include "plan/flow_kinds.h"
#include "plan/routed_stage.h"
#include "plan/run_stage.h"
#include "sample/rows.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

using SharedLeaves = std::shared_ptr<const std::vector<StagePtr>>;

/// Pulls a step, computes its rows and returns them.
class StepRowsCursor final : public BufferedCursor<StepCursor> {
 public:
  StepRowsCursor(const StepFlow& steps, Turn turn, SharedLeaves leaves, const ElementSpec& spec)
      : BufferedCursor(steps.open(turn)), turn_(turn), leaves_(std::move(leaves)), rows_(spec) {}

 protected:
  Result<std::optional<std::size_t>> fill(Pulling& pulling) override {
    auto more = input_->pull(step_, pulling);
    if (!more) return std::move(more.failure());
    if (!*more) return std::optional<std::size_t>();
    const BlockView pulled = step_.buffer->rows(0, step_.rows);
    rows_.reserve(step_.rows);
    auto kept =
        run_stage(*(*leaves_)[step_.leaf], {turn_, 0, &pulled}, rows_.rows(0, step_.rows), pulling);
    if (!kept) return std::move(kept.failure());
    filled_ = *kept;
    return std::optional<std::size_t>(filled_);
  }
  Result<void> hand_out(std::size_t first, const BlockView& out) override {
    copy_rows(rows_.rows(0, filled_), first, out, 0, out.rows);
    return {};
  }

 private:
  const Turn turn_;
  const SharedLeaves leaves_;
  PulledStep step_;
  RowBuffer rows_;
  std::size_t filled_ = 0;
};

/// Pulls an element and returns its rows, numbered from the first id on.
class ElementRowsCursor final : public BufferedCursor<Cursor> {
 public:
  ElementRowsCursor(const Flow& input, Turn turn, const IdSpace& ids)
      : BufferedCursor(input.open(turn)),
        input_flow_(input),
        turn_(turn),
        ids_(ids),
        element_(input.spec()) {
    element_.reserve(1);
  }

 protected:
  Result<std::optional<std::size_t>> fill(Pulling& pulling) override {
    const BlockView element = element_.rows(0, 1);
    auto got = input_->pull(element, pulling);
    if (!got) return std::move(got.failure());
    if (*got == 0) return std::optional<std::size_t>();
    sample_ = read_row(element, 0);
    std::optional<std::int64_t> rows;
    for (const Tensor& leaf : sample_.leaves()) {
      const std::int64_t here = leaf.shape().empty() ? -1 : leaf.shape().front();
      if (!rows) rows = here;
      if (here < 0 || here != *rows || is_variable(leaf.dtype())) {
        Failure failure{fmt::format("unbatch: {} has no common first dimension of rows",
                                    ElementSpec::of(sample_).text())};
        return at_sample(std::move(failure), input_flow_.ids(), element);
      }
    }
    rows_ = static_cast<std::size_t>(rows.value_or(0));
    return std::optional<std::size_t>(rows_);
  }
  Result<void> hand_out(std::size_t first, const BlockView& out) override {
    for (std::size_t i = 0; i < out.rows; ++i) {
      out.identity.sample_id[i] = ids_.parts.front().first_id + handed_out_++;
      out.identity.occurrence[i] = turn_.round;
      if (const auto wrong = write_row(out, i, row(first + i))) {
        Failure failure{*wrong, {}, "all elements must have rows of the same fields", nullptr, i};
        return at_sample(std::move(failure), ids_, out);
      }
    }
    return {};
  }
  std::span<std::uint64_t> place() override { return {&handed_out_, 1}; }

 private:
  [[nodiscard]] Sample row(std::size_t at) const {
    std::vector<Tensor> leaves;
    for (const Tensor& leaf : sample_.leaves()) {
      const std::size_t bytes = leaf.raw().size() / rows_;
      leaves.push_back(Tensor::view(leaf.dtype(), {leaf.shape().begin() + 1, leaf.shape().end()},
                                    leaf.raw().subspan(at * bytes, bytes), nullptr));
    }
    return Sample::assemble(sample_.structure(), std::move(leaves));
  }

  const Flow& input_flow_;
  const Turn turn_;
  const IdSpace& ids_;
  RowBuffer element_;
  Sample sample_;  // refers to element_ where that is typed
  std::size_t rows_ = 0;
  std::uint64_t handed_out_ = 0;
};

/// After batch.
class Unbatch final : public OnSamples {
 public:
  [[nodiscard]] Words words() const override { return {"unbatch", "unbatch()"}; }
  [[nodiscard]] Facts facts(const Node&) const override { return {.unbatches = true}; }
  void add_order(const Node& node, const Counting&,
                 std::vector<std::string>& lines) const override {
    OnSamples::add_order(node, {true, std::nullopt}, lines);
  }
  [[nodiscard]] Json arguments() const override { return Json::object(); }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return inputs.front().unbatch();
  }
  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override {
    std::vector<StagePtr> leaves = stages(compiler.chains(node.input(), first_id));
    Steps steps = steps_of(node.input(), std::nullopt, compiler.options().drawn_seed).steps;
    return routed_stage(
        std::move(leaves),
        [steps = std::move(steps)](const Ask& ask, std::uint64_t position) {
          const Place place = steps.row(ask.turn, position);
          return Target{place.leaf, place.turn, place.first};
        },
        node.spec);
  }
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node& node,
                             std::uint64_t first_id) const override {
    std::vector<LeafProgram> chains;
    StepFlowPtr steps = compiler.step_flow(node.input(), first_id, std::nullopt, chains);
    std::vector<StagePtr> leaves = stages(std::move(chains));
    IdSpace ids;
    for (const StagePtr& leaf : leaves)
      ids.parts.insert(ids.parts.end(), leaf->ids().parts.begin(), leaf->ids().parts.end());
    return rows_over<StepRowsCursor>(
        std::move(steps), node.spec, std::move(ids),
        SharedLeaves(std::make_shared<const std::vector<StagePtr>>(std::move(leaves))), node.spec);
  }
  [[nodiscard]] Promise promise(const Node& node, const Delivery&) const override {
    Promise promise = promise_of(node.input(), {std::nullopt, true});
    if (std::exchange(promise.dropped, 0) > 0) promise.all = false;
    return promise;
  }

 private:
  static std::vector<StagePtr> stages(std::vector<LeafProgram> chains) {
    std::vector<StagePtr> leaves;
    for (LeafProgram& chain : chains) {
      PENSTOCK_CHECK(chain.whole.empty());
      leaves.push_back(std::move(chain.samples));
    }
    return leaves;
  }
};

/// Before batch: for elements that contain several rows in their first dimension.
class UnbatchElements final : public OnSamples {
 public:
  [[nodiscard]] Words words() const override { return {"unbatch", "unbatch() of samples"}; }
  [[nodiscard]] Facts facts(const Node&) const override { return {}; }
  [[nodiscard]] Json arguments() const override { return Json::object(); }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return inputs.front().unbatch();
  }
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node& node,
                             std::uint64_t first_id) const override {
    FlowPtr input = compiler.flow(node.input(), first_id);
    const IdSpace ids{{{first_id, compiler.next_source(first_id).ordinal}}};
    return rows_over<ElementRowsCursor>(std::move(input), node.spec, ids, ids);
  }
  [[nodiscard]] std::uint64_t id_space(const Node&) const override { return kStreamIds; }
};

/// The spec of each field without its first dimension.
ElementSpec row_spec(ElementSpec spec) {
  for (FieldSpec& field : spec.fields) {
    if (field.shape.empty() || is_variable(field.dtype))
      throw ConfigError(fmt::format("unbatch: field \"{}\" ({}) has no first dimension of rows",
                                    field.path, field.text()));
    field.shape.erase(field.shape.begin());
  }
  return spec;
}

}  // namespace

Dataset Dataset::unbatch() const {
  if (!batched()) {
    Node node = after(*this, std::make_shared<const UnbatchElements>());
    node.spec = row_spec(element_spec());
    node.size = Cardinality::unknown();
    node.stream = true;
    return make_node(std::move(node));
  }
  if (const Node* found = find_node(
          *node_, [](const Node& node) { return node.facts().hides_rows; },
          [](const Node& node) { return node.is_leaf(); }))
    throw ConfigError(fmt::format("unbatch: not after {}", describe_node(*found)), {},
                      "unbatch before it, or shuffle, shard and map the samples");
  Node node = after(*this, std::make_shared<const Unbatch>());
  node.batched = false;
  if (has_sequence(*node_)) {  // the number of rows is known only when they arrive
    node.stream = true;
    node.size = Cardinality::unknown();
  }
  if (cardinality().is_counted()) node.size = Cardinality::of(rows_of(*node_));
  return make_node(std::move(node));
}

Dataset parse_unbatch(const Parsed& parsed) {
  return parsed.input().unbatch();
}

}  // namespace penstock
