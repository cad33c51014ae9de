// The steps of indexed data, and of Sequences, as a stream.
// tested in src/plan/step_flows_test.cc
#include <utility>

#include "plan/flows.h"
#include "plan/run_stage.h"
#include "sample/rows.h"

namespace penstock {
namespace {

/// Fills `step` with the rows at `place`; returns how many there are.
Result<std::size_t> make_rows(const StagePtr& stage, const Place& place, PulledStep& step,
                              Pulling& pulling) {
  if (!step.buffer || &step.buffer->spec() != &stage->spec())
    step.buffer = std::make_unique<RowBuffer>(stage->spec());
  step.buffer->reserve(place.count);
  return run_stage(*stage, {place.turn, place.first, nullptr}, step.buffer->rows(0, place.count),
                   pulling);
}
Result<std::size_t> make_rows(const SequenceLeaf& leaf, const Place& place, PulledStep& step,
                              Pulling& pulling) {
  SequenceBatch batch;
  auto done =
      leaf.source->get({place.first, leaf.first_id, place.turn.pass, place.turn.occurrence()},
                       batch, pulling.context);
  if (!done) return std::move(done.failure());
  const std::size_t rows = batch.view.rows;
  if (rows == 0) return rows;
  step.buffer = std::make_unique<RowBuffer>(*batch.view.spec);
  step.buffer->reserve(rows);
  copy_rows(batch.view, 0, step.buffer->rows(0, rows), 0, rows);
  return rows;
}

/// Steps found by number; each `Leaf` computes the rows of one batch node.
template <typename Leaf>
class NumberedFlow final : public StepFlow {
 public:
  NumberedFlow(std::vector<Leaf> leaves, Steps steps, std::uint32_t first_leaf)
      : leaves_(std::move(leaves)), steps_(std::move(steps)), first_leaf_(first_leaf) {}
  [[nodiscard]] StepCursorPtr open(Turn turn) const override {
    return std::make_unique<Walk>(*this, turn);
  }

 private:
  class Walk final : public StepCursor {
   public:
    Walk(const NumberedFlow& flow, Turn turn) : flow_(flow), turn_(turn) {}

    Result<bool> pull(PulledStep& step, Pulling& pulling) override {
      while (step_ < flow_.steps_.count()) {
        const Place place = flow_.steps_.step(turn_, step_++);
        auto rows = make_rows(flow_.leaves_[place.leaf], place, step, pulling);
        if (!rows) return std::move(rows.failure());
        if (*rows == 0) continue;
        step.leaf = flow_.first_leaf_ + place.leaf;
        step.pass = turn_.pass;
        step.rows = *rows;
        step.padded_to = place.padded_to;
        return true;
      }
      return false;
    }
    void save(Anchor& anchor) override { anchor.numbers.push_back(step_); }
    Result<void> restore(AnchorReader& anchor, Pulling&) override {
      step_ = anchor.number();
      return {};
    }

   private:
    const NumberedFlow& flow_;
    const Turn turn_;
    std::uint64_t step_ = 0;
  };

  const std::vector<Leaf> leaves_;
  const Steps steps_;
  const std::uint32_t first_leaf_;
};

}  // namespace

StepFlowPtr indexed_steps_flow(std::vector<StagePtr> leaves, Steps steps,
                               std::uint32_t first_leaf) {
  return std::make_unique<NumberedFlow<StagePtr>>(std::move(leaves), std::move(steps), first_leaf);
}
StepFlowPtr sequence_steps_flow(std::vector<SequenceLeaf> leaves, Steps steps,
                                std::uint32_t first_leaf) {
  return std::make_unique<NumberedFlow<SequenceLeaf>>(std::move(leaves), std::move(steps),
                                                      first_leaf);
}

}  // namespace penstock
