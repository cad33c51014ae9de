#include "verb/map.h"

#include <fmt/format.h>

#include <algorithm>

#include "penstock/image.h"
#include "plan/flow_kinds.h"
#include "plan/run_stage.h"
#include "sample/rows.h"
#include "verb/batch.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"

namespace penstock {
namespace {

/// Rows processed by an op. Failed rows leave the stream and are replaced by the next ones.
class MapCursor final : public RowCursor {
 public:
  MapCursor(const Flow& input, Turn turn, SharedStage stage)
      : RowCursor(input.open(turn)), turn_(turn), stage_(std::move(stage)), before_(input.spec()) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    std::size_t done = 0;
    while (done < out.rows) {
      const std::size_t wanted = out.rows - done;
      before_.reserve(wanted);
      auto got = input_->pull(before_.rows(0, wanted), pulling);
      if (!got) return got;
      if (*got > 0) {
        const Scratch::Frame frame(pulling.context.scratch);
        const BlockView in = before_.rows(0, *got);
        auto kept = run_stage(*stage_, {turn_, 0, &in},
                              cut_rows(out, done, *got, pulling.context.scratch), pulling);
        if (!kept) return kept;
        done += *kept;
      }
      if (*got < wanted) break;
    }
    return done;
  }

 private:
  const Turn turn_;
  const SharedStage stage_;
  RowBuffer before_;
};

class Map final : public Verb {
 public:
  Map(std::shared_ptr<const Op> op, std::uint64_t seed, bool sees_batches)
      : op_(std::move(op)), seed_(seed), sees_batches_(sees_batches) {}
  [[nodiscard]] Words words() const override {
    std::string line = op_->describe();
    // The line of a catalogued op contains its seed.
    if (op_->random() && line.find("seed=") == std::string::npos)
      line += fmt::format(", seed={}", seed_);
    if (sees_batches_) line += ", on whole batches";
    return {op_->word(), line};
  }
  [[nodiscard]] Facts facts(const Node&) const override {
    return {
        .hides_rows = sees_batches_, .keeps_rows = !sees_batches_, .sees_batches = sees_batches_};
  }
  void add_order(const Node& node, const Counting& counting,
                 std::vector<std::string>& lines) const override {
    add_order_of_inputs(node, counting, lines);
  }
  void add_values(const Node& node, Digest& digest) const override {
    digest.add(words().line);
    digest.add(node.spec.text());
  }
  [[nodiscard]] Json arguments() const override {
    Json arguments = op_->arguments();
    if (!arguments.empty()) return arguments;
    return {{"name", required_name(op_->describe(), op_->name())}, {"seed", seed_}};
  }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return add_map(inputs.front(), op_, seed_);
  }
  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override {
    StagePtr input = compiler.samples(node.input(), first_id);
    return map_stage(std::move(input), op_, node.spec, place(compiler));
  }
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node& node,
                             std::uint64_t first_id) const override {
    FlowPtr input = compiler.flow(node.input(), first_id);
    StagePtr stage =
        map_stage(pulled_stage(input->spec(), input->ids()), op_, node.spec, place(compiler));
    const ElementSpec spec = stage->spec();
    return same_rows_over<MapCursor>(std::move(input), spec, SharedStage(std::move(stage)));
  }
  [[nodiscard]] FlowPtr flow_before_maps(Compiler& compiler, const Node& node,
                                         std::uint64_t first_id,
                                         std::vector<Deferred>& deferred) const override {
    FlowPtr input = compiler.flow_before_maps(node.input(), first_id, deferred);
    deferred.push_back({op_, node.spec, place(compiler)});
    return input;
  }
  [[nodiscard]] std::vector<LeafProgram> chains(Compiler& compiler, const Node& node,
                                                std::uint64_t first_id) const override {
    std::vector<LeafProgram> chains = compiler.chains(node.input(), first_id);
    add_to(chains, node, place(compiler));
    return chains;
  }
  [[nodiscard]] StepFlowPtr step_flow(Compiler& compiler, const Node& node, std::uint64_t first_id,
                                      std::optional<Tail> tail,
                                      std::vector<LeafProgram>& chains) const override {
    const std::size_t first = chains.size();
    StepFlowPtr input = compiler.step_flow(node.input(), first_id, tail, chains);
    add_to(std::span(chains).subspan(first), node, place(compiler));
    return input;
  }
  [[nodiscard]] Steps steps(const Node& node, StepsWalk& walk) const override {
    return walk.of(node.input());
  }
  [[nodiscard]] Promise promise(const Node& node, const Delivery& delivery) const override {
    return promise_of(node.input(), delivery);
  }
  [[nodiscard]] std::shared_ptr<const Op> op() const override { return op_; }

 private:
  [[nodiscard]] MapPlace place(Compiler& compiler) const {
    return compiler.place_of(*op_, seed_, op_->describe());
  }
  /// After batch. A row-wise op gives the same result as before batch, unless a function of whole
  /// batches comes between.
  void add_to(std::span<LeafProgram> chains, const Node& node, const MapPlace& place) const {
    for (LeafProgram& chain : chains) {
      if (sees_batches_ || !chain.whole.empty()) {
        chain.whole.push_back({op_, node.spec, place});
      } else {
        chain.samples = map_stage(std::move(chain.samples), op_, node.spec, place);
      }
    }
  }

  const std::shared_ptr<const Op> op_;
  const std::uint64_t seed_;
  const bool sees_batches_;
};

/// True if a function of whole batches comes between `node` and its batch.
bool after_whole_batches(const Node& node) {
  if (!node.batched) return false;
  return find_node(
             node, [](const Node& at) { return at.facts().sees_batches; },
             [](const Node& at) { return at.is_leaf(); }) != nullptr;
}

/// True if every batch of `node` pads the field, so that it is one tensor.
bool is_padded(const Node& node, const FieldSpec& field) {
  if (is_variable(field.dtype)) return false;
  if (!node.is_leaf())
    return std::ranges::all_of(node.inputs,
                               [&](const NodePtr& input) { return is_padded(*input, field); });
  const Padding* const padding = padding_of(node);
  return padding != nullptr && padding->of(field.path) != nullptr;
}

void check_whole(const Dataset& input, const Op& op) {
  if (!input.element_spec().known && !op.takes_lists())
    throw ConfigError(
        fmt::format("{}: a function of whole batches needs a known spec", op.describe()), {},
        "declare .spec on the map before it");
  for (const FieldSpec& field : input.element_spec().fields)
    if (op.takes_samples() && !is_dense(field) && !is_padded(*input.node(), field))
      throw ConfigError(fmt::format("{}: field \"{}\" ({}) has no batch tensor", op.describe(),
                                    field.path, field.text()),
                        {}, "map it before batch, use padded_batch, or declare .row_wise = true");
  if (op.random() && !op.draws_by_row())
    throw ConfigError(fmt::format("{}: an Rng is keyed for one sample, this function sees a batch",
                                  op.describe()),
                      {}, "declare .row_wise = true, or map before batch");
}

void check_after_whole(const Dataset& input, const Op& op, const ElementSpec& result) {
  if (!after_whole_batches(*input.node())) return;
  if (!input.element_spec().known)
    throw ConfigError(
        fmt::format("{}: the result of the collate_fn before it is unknown before running",
                    op.describe()),
        {}, "declare .spec on it");
  const bool draws = op.random() && !op.draws_by_row();
  if (draws || !result.known)
    throw ConfigError(fmt::format("{}: after a function of whole batches a map must have a known "
                                  "result and take no Rng",
                                  op.describe()),
                      {}, "put it before that function, or declare .spec");
}

}  // namespace

Dataset add_map(const Dataset& input, std::shared_ptr<const Op> op, std::uint64_t seed) {
  const bool whole = input.batched() && !op->row_wise();
  if (op->draws_by_row() && !input.batched())
    throw ConfigError(fmt::format("{}: it mixes the samples of a batch", op->describe()), {},
                      "put it after batch()");
  if (whole) check_whole(input, *op);
  Node node = after(input, std::make_shared<const Map>(op, seed, whole));
  // Row-wise ops receive rows; whole ops receive the batch with its rows as first dimension.
  node.spec = op->output(input.element_spec());
  if (whole && !node.spec.known && !op->takes_lists()) node.spec = input.element_spec();
  check_after_whole(input, *op, node.spec);
  return make_node(std::move(node));
}

Dataset Dataset::map_column(ColumnFn fn, const MapOptions& options) const {
  return add_map(*this, make_column_op(std::move(fn), options.name), options.seed);
}

Dataset Dataset::map_sample(SampleFn fn, const MapOptions& options) const {
  return add_map(*this, make_sample_op(std::move(fn), options), options.seed);
}

Dataset Dataset::map_block(BlockFn fn, const MapOptions& options) const {
  return add_map(*this, make_block_op(std::move(fn), options), options.seed);
}

Dataset Dataset::map(const OpCall& call) const {
  return add_map(*this, call.op(), call.op()->seed());
}

Dataset Dataset::map(const image::Chain& chain) const {
  return map(static_cast<OpCall>(chain));
}

Dataset parse_map(const Parsed& parsed) {
  if (parsed.arguments.contains("name"))
    return add_map(parsed.input(), parsed.function(), parsed.count("seed"));
  return parsed.input().map(OpCall(make_catalogued_op(parsed.word, parsed.arguments)));
}

}  // namespace penstock
