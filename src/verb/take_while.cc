// tested in src/verb/filter_test.cc
#include "plan/flow_kinds.h"
#include "sample/rows.h"
#include "verb/catalogue.h"
#include "verb/kinds.h"
#include "verb/predicate.h"

namespace penstock {
namespace {

/// Works row by row: nothing after the end may be pulled, or fail.
class TakeWhileCursor final : public RowCursor {
 public:
  TakeWhileCursor(const Flow& input, Turn turn, SharedStage predicate)
      : RowCursor(input.open(turn)), turn_(turn), predicate_(std::move(predicate)) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    std::size_t kept = 0;
    while (kept < out.rows && ended_ == 0) {
      const Scratch::Frame frame(pulling.context.scratch);
      const BlockView row = cut_rows(out, kept, 1, pulling.context.scratch);
      auto got = input_->pull(row, pulling);
      if (!got) return got;
      std::uint8_t keep = 0;
      std::uint8_t failed = 0;
      if (*got > 0)
        if (auto done = judge(*predicate_, turn_, row, &keep, &failed, pulling); !done)
          return std::move(done.failure());
      // A row whose predicate failed is skipped; the first row that does not pass ends the stream.
      ended_ = keep == 0 && failed == 0 ? 1 : 0;
      kept += keep;
    }
    return kept;
  }

 private:
  std::span<std::uint64_t> place() override { return {&ended_, 1}; }

  const Turn turn_;
  const SharedStage predicate_;
  std::uint64_t ended_ = 0;  // 1 at the end
};

class TakeWhile final : public OnSamples {
 public:
  TakeWhile(std::shared_ptr<const Op> op, std::uint64_t seed) : op_(std::move(op)), seed_(seed) {}
  [[nodiscard]] Words words() const override {
    return {"take_while", predicate_line("take_while", *op_, seed_)};
  }
  [[nodiscard]] Facts facts(const Node&) const override { return {}; }
  [[nodiscard]] Json arguments() const override {
    return {{"name", required_name("take_while", op_->name())}, {"seed", seed_}};
  }
  [[nodiscard]] Dataset apply(const Node&, const std::vector<Dataset>& inputs) const override {
    return add(inputs.front(), op_, seed_);
  }
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node& node,
                             std::uint64_t first_id) const override {
    FlowPtr input = compiler.flow(node.input(), first_id);
    StagePtr predicate = pulled_predicate(compiler, *input, op_, seed_, words().line);
    const ElementSpec spec = input->spec();
    return same_rows_over<TakeWhileCursor>(std::move(input), spec,
                                           SharedStage(std::move(predicate)));
  }
  [[nodiscard]] std::shared_ptr<const Op> op() const override { return op_; }

  static Dataset add(const Dataset& input, const std::shared_ptr<const Op>& op,
                     std::uint64_t seed) {
    check_predicate(input, *op, "take_while");
    Node node = after(input, std::make_shared<const TakeWhile>(op, seed));
    node.size = Cardinality::unknown();
    node.stream = true;
    return make_node(std::move(node));
  }

 private:
  const std::shared_ptr<const Op> op_;  // returns one bool per row
  const std::uint64_t seed_;
};

}  // namespace

Dataset Dataset::take_while_op(std::shared_ptr<const Op> op, const FilterOptions& options) const {
  return TakeWhile::add(*this, op, options.seed);
}

Dataset parse_take_while(const Parsed& parsed) {
  return TakeWhile::add(parsed.input(), parsed.function(), parsed.count("seed"));
}

}  // namespace penstock
