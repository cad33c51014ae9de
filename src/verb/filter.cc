#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "plan/flow_kinds.h"
#include "sample/rows.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"
#include "verb/predicate.h"

namespace penstock {
namespace {

class FilterCursor final : public RowCursor {
 public:
  FilterCursor(const Flow& input, Turn turn, SharedStage predicate)
      : RowCursor(input.open(turn)), turn_(turn), predicate_(std::move(predicate)) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    std::size_t kept = 0;
    while (kept < out.rows) {
      const Scratch::Frame frame(pulling.context.scratch);
      const std::size_t wanted = out.rows - kept;
      auto got = input_->pull(cut_rows(out, kept, wanted, pulling.context.scratch), pulling);
      if (!got) return got;
      if (*got > 0) {
        const BlockView rows = cut_rows(out, kept, *got, pulling.context.scratch);
        auto* const keep = pulling.context.scratch.array<std::uint8_t>(*got);
        auto* const failed = pulling.context.scratch.array<std::uint8_t>(*got);
        auto done = judge(*predicate_, turn_, rows, keep, failed, pulling);
        if (!done) return std::move(done.failure());
        kept += keep_rows(rows, {keep, *got});
      }
      if (*got < wanted) break;
    }
    return kept;
  }

 private:
  const Turn turn_;
  const SharedStage predicate_;
};

/// Marks the rows for which `op` returns false.
class MaskStage final : public Stage {
 public:
  MaskStage(StagePtr input, std::shared_ptr<const Op> op, MapPlace place)
      : Stage(input->spec(), input->ids()),
        input_(std::move(input)),
        judge_(map_stage(pulled_stage(spec(), ids()), std::move(op),
                         ElementSpec::single(Dtype::boolean), std::move(place))) {}
  void identify(const Ask& ask, std::uint64_t* ids, const Context& context) const override {
    input_->identify(ask, ids, context);
  }
  void collect_reads(const Ask& ask, const Context& context,
                     std::vector<PlannedRead>& reads) const override {
    input_->collect_reads(ask, context, reads);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, const Context& context) const override {
    if (auto done = input_->produce(ask, out, context); !done) return done;
    if (out.identity.failed == nullptr) return {};  // the caller needs only the values
    const Scratch::Frame frame(context.scratch);
    Identity identity = out.identity;
    identity.sample_id = context.scratch.array<std::uint64_t>(out.rows);
    identity.occurrence = context.scratch.array<std::uint64_t>(out.rows);
    const ScratchBlock verdict(judge_->spec(), out.rows, context.scratch, identity);
    std::uint64_t* const positions = context.scratch.array<std::uint64_t>(out.rows);
    std::iota(positions, positions + out.rows, std::uint64_t{0});
    auto done = judge_->produce({ask.turn, {positions, out.rows}, &out}, verdict.view(), context);
    if (!done) return done;
    const auto* const keep = reinterpret_cast<const std::uint8_t*>(verdict.view().columns[0].data);
    for (std::size_t row = 0; row < out.rows; ++row)
      if (out.identity.failed[row] == kRowGood && keep[row] == 0)
        out.identity.failed[row] = kRowMasked;
    return {};
  }

 private:
  StagePtr input_;
  StagePtr judge_;
};

class FilterVerb final : public OnSamples {
 public:
  FilterVerb(std::shared_ptr<const Op> op, std::uint64_t seed, bool mask)
      : op_(std::move(op)), seed_(seed), mask_(mask) {}
  [[nodiscard]] Words words() const override {
    return {"filter", predicate_line("filter", *op_, seed_) + (mask_ ? ", mask" : "")};
  }
  [[nodiscard]] Facts facts(const Node&) const override { return {}; }
  void add_order(const Node& node, const Counting& counting,
                 std::vector<std::string>& lines) const override {
    add_order_of_inputs(node, counting, lines);
    if (!mask_) lines.push_back(words().line);
  }
  void add_values(const Node& node, Digest& digest) const override {
    if (!mask_) return;
    digest.add(words().line);
    digest.add(node.spec.text());
  }
  [[nodiscard]] Json arguments() const override {
    return {{"name", required_name("filter", op_->name())}, {"seed", seed_}, {"mask", mask_}};
  }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return add(inputs.front(), op_, seed_, mask_);
  }
  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override {
    StagePtr input = compiler.samples(node.input(), first_id);
    compiler.add_mask();
    return std::make_unique<MaskStage>(std::move(input), op_,
                                       compiler.place_of(*op_, seed_, words().line));
  }
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node& node,
                             std::uint64_t first_id) const override {
    FlowPtr input = compiler.flow(node.input(), first_id);
    StagePtr predicate = pulled_predicate(compiler, *input, op_, seed_, words().line);
    const ElementSpec spec = input->spec();
    return same_rows_over<FilterCursor>(std::move(input), spec, SharedStage(std::move(predicate)));
  }
  [[nodiscard]] std::shared_ptr<const Op> op() const override { return op_; }

  static Dataset add(const Dataset& input, const std::shared_ptr<const Op>& op, std::uint64_t seed,
                     bool mask) {
    check_predicate(input, *op, "filter");
    if (mask && input.streamed())
      throw ConfigError(
          "filter: a stream removes elements that do not pass; there is nothing to mask", {},
          "remove mask");
    Node node = after(input, std::make_shared<const FilterVerb>(op, seed, mask));
    if (!mask) {
      node.size = Cardinality::unknown();
      node.stream = true;
    }
    return make_node(std::move(node));
  }

 private:
  const std::shared_ptr<const Op> op_;  // returns one bool per row
  const std::uint64_t seed_;
  const bool mask_;  // rows keep their place and are masked
};

}  // namespace

Dataset Dataset::filter_op(std::shared_ptr<const Op> op, const FilterOptions& options) const {
  return FilterVerb::add(*this, op, options.seed, options.mask);
}

Dataset parse_filter(const Parsed& parsed) {
  return FilterVerb::add(parsed.input(), parsed.function(), parsed.count("seed"),
                         parsed.flag("mask"));
}

}  // namespace penstock
