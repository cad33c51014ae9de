// Steps of a stream: batches as they are pulled, and what is done to whole steps.
// tested in src/plan/flows_test.cc
#include <algorithm>
#include <array>
#include <utility>

#include "plan/flows.h"
#include "plan/run_stage.h"
#include "sample/rows.h"

namespace penstock {
namespace {

class BatchFlow final : public StepFlow {
 public:
  BatchFlow(FlowPtr input, StreamBatch shape) : input_(std::move(input)), shape_(shape) {}
  [[nodiscard]] StepCursorPtr open(Turn turn) const override;

 private:
  friend class BatchCursor;
  const FlowPtr input_;
  const StreamBatch shape_;
};

class BatchCursor final : public CursorOver<StepCursor, Cursor> {
 public:
  BatchCursor(const BatchFlow& flow, Turn turn)
      : CursorOver(flow.input_->open(turn)), flow_(flow), pass_(turn.pass) {}

  Result<bool> pull(PulledStep& step, Pulling& pulling) override {
    const StreamBatch& shape = flow_.shape_;
    if (!step.buffer || &step.buffer->spec() != &flow_.input_->spec())
      step.buffer = std::make_unique<RowBuffer>(flow_.input_->spec());
    std::size_t rows = 0;
    // A batch size may be "all of it": memory is taken as rows come.
    constexpr std::size_t kAtOnce = 65536;
    while (rows < shape.size && ended_ == 0) {
      const std::size_t wanted = std::min<std::uint64_t>(shape.size - rows, kAtOnce);
      step.buffer->reserve(rows + wanted);
      auto got = input_->pull(step.buffer->rows(rows, wanted), pulling);
      if (!got) return std::move(got.failure());
      rows += *got;
      ended_ = *got < wanted ? 1 : 0;
    }
    if (rows == 0 || (rows < shape.size && shape.tail == TailRule::drop)) return false;
    step.padded_to = shape.tail == TailRule::pad ? shape.size : 0;
    step.leaf = shape.leaf;
    step.pass = pass_;
    step.rows = rows;
    return true;
  }

 private:
  std::span<std::uint64_t> place() override { return {&ended_, 1}; }

  const BatchFlow& flow_;
  const std::uint64_t pass_;
  std::uint64_t ended_ = 0;  // 1 at the end
};

StepCursorPtr BatchFlow::open(Turn turn) const {
  return std::make_unique<BatchCursor>(*this, turn);
}

/// Fills `step` with the rows at `place`, and says how many there are.
Result<std::size_t> make_rows(const StagePtr& stage, const Place& place, PulledStep& step,
                              Pulling& pulling) {
  if (!step.buffer || &step.buffer->spec() != &stage->spec())
    step.buffer = std::make_unique<RowBuffer>(stage->spec());
  step.buffer->reserve(place.count);
  return run_stage(*stage, {place.turn, place.first, nullptr}, step.buffer->rows(0, place.count),
                   pulling);
}
Result<std::size_t> make_rows(const SequenceLeaf& leaf, const Place& place, PulledStep& step,
                              Pulling&) {
  SequenceBatch batch;
  auto done = leaf.source->get(
      {place.first, leaf.first_id, place.turn.pass, place.turn.occurrence()}, batch);
  if (!done) return std::move(done.failure());
  const std::size_t rows = batch.view.rows;
  if (rows == 0) return rows;
  step.buffer = std::make_unique<RowBuffer>(*batch.view.spec);
  step.buffer->reserve(rows);
  copy_rows(batch.view, 0, step.buffer->rows(0, rows), 0, rows);
  return rows;
}

/// Steps that are found by number, made of `Leaf`s.
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

/// Every `stride`-th step from `first` on, `count` at most.
struct StepSlice {
  std::uint64_t first = 0;
  std::uint64_t stride = 1;
  std::uint64_t count = UINT64_MAX;
};

class SliceFlow final : public StepFlow {
 public:
  SliceFlow(StepFlowPtr input, StepSlice slice) : input_(std::move(input)), slice_(slice) {}
  [[nodiscard]] StepCursorPtr open(Turn turn) const override;

 private:
  friend class SliceCursor;
  const StepFlowPtr input_;
  const StepSlice slice_;
};

class SliceCursor final : public CursorOver<StepCursor, StepCursor> {
 public:
  SliceCursor(const SliceFlow& flow, Turn turn)
      : CursorOver(flow.input_->open(turn)),
        flow_(flow),
        place_{flow.slice_.first, flow.slice_.count} {}

  Result<bool> pull(PulledStep& step, Pulling& pulling) override {
    if (left_ == 0) return false;
    while (true) {
      auto more = input_->pull(step, pulling);
      if (!more || !*more) return more;
      if (before_ > 0) {
        --before_;
        continue;
      }
      before_ = flow_.slice_.stride - 1;
      --left_;
      return true;
    }
  }

 private:
  std::span<std::uint64_t> place() override { return place_; }

  const SliceFlow& flow_;
  std::array<std::uint64_t, 2> place_;
  std::uint64_t& before_ = place_[0];  // steps to pass by before the next one
  std::uint64_t& left_ = place_[1];
};

StepCursorPtr SliceFlow::open(Turn turn) const {
  return std::make_unique<SliceCursor>(*this, turn);
}

/// Parts one after the other; repeats are the same part in other turns.
class ChainFlow final : public StepFlow {
 public:
  ChainFlow(std::vector<StepFlowPtr> parts, std::uint64_t rounds)
      : parts_(std::move(parts)), rounds_(rounds) {}
  [[nodiscard]] StepCursorPtr open(Turn turn) const override;

 private:
  friend class ChainCursor;
  const std::vector<StepFlowPtr> parts_;
  const std::uint64_t rounds_;  // of the one part; 1 for several parts
};

class ChainCursor final : public StepCursor {
 public:
  ChainCursor(const ChainFlow& flow, Turn turn)
      : flow_(flow), turn_(turn), end_(flow.rounds_ * flow.parts_.size()) {}

  Result<bool> pull(PulledStep& step, Pulling& pulling) override {
    while (part_ < end_) {
      if (!input_) open_part();
      auto more = input_->pull(step, pulling);
      if (!more) return more;
      if (*more) {
        any_ = true;
        return true;
      }
      input_.reset();
      ++part_;
      // A round without a step ends a repeat.
      if (!any_ && flow_.parts_.size() == 1) part_ = end_;
      any_ = false;
    }
    return false;
  }
  void save(Anchor& anchor) override {
    anchor.numbers.insert(anchor.numbers.end(), {part_, any_ ? 1ULL : 0ULL, input_ ? 1ULL : 0ULL});
    if (input_) input_->save(anchor);
  }
  Result<void> restore(AnchorReader& anchor, Pulling& pulling) override {
    part_ = std::min(anchor.number(), end_);
    any_ = anchor.number() != 0;
    if (anchor.number() == 0 || part_ == end_) return {};
    open_part();
    return input_->restore(anchor, pulling);
  }

 private:
  void open_part() {
    const std::uint64_t parts = flow_.parts_.size();
    const std::uint64_t round =
        parts == 1 ? nested_round(turn_.round, flow_.rounds_, part_) : turn_.round;
    input_ = flow_.parts_[part_ % parts]->open({turn_.pass, round});
  }

  const ChainFlow& flow_;
  const Turn turn_;
  const std::uint64_t end_;
  StepCursorPtr input_;
  std::uint64_t part_ = 0;
  bool any_ = false;  // steps in this part
};

StepCursorPtr ChainFlow::open(Turn turn) const {
  return std::make_unique<ChainCursor>(*this, turn);
}

class UnbatchFlow final : public Flow {
 public:
  UnbatchFlow(StepFlowPtr steps, std::vector<StagePtr> leaves, const ElementSpec& spec, IdSpace ids)
      : Flow(spec, std::move(ids)), steps_(std::move(steps)), leaves_(std::move(leaves)) {}
  [[nodiscard]] CursorPtr open(Turn turn) const override;

 private:
  friend class UnbatchCursor;
  const StepFlowPtr steps_;
  const std::vector<StagePtr> leaves_;
};

class UnbatchCursor final : public Cursor {
 public:
  UnbatchCursor(const UnbatchFlow& flow, Turn turn)
      : flow_(flow), turn_(turn), steps_(flow.steps_->open(turn)), rows_(flow.spec()) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    std::size_t made = 0;
    while (made < out.rows) {
      if (at_ == ready_) {
        auto more = next_step(pulling);
        if (!more) return std::move(more.failure());
        if (!*more) break;
        continue;
      }
      const std::size_t rows = std::min(out.rows - made, ready_ - at_);
      copy_rows(rows_.rows(0, ready_), at_, out, made, rows);
      made += rows;
      at_ += rows;
    }
    return made;
  }
  void save(Anchor& anchor) override {
    const bool inside = at_ < ready_;
    anchor.numbers.push_back(inside ? at_ : 0);
    Anchor now;
    if (!inside) steps_->save(now);
    write_anchor(inside ? before_ : now, anchor);
  }
  Result<void> restore(AnchorReader& anchor, Pulling& pulling) override {
    const std::uint64_t passed = anchor.number();
    const Anchor before = anchor.anchor();
    AnchorReader reader(before);
    if (auto done = steps_->restore(reader, pulling); !done) return done;
    if (passed == 0) return {};
    auto more = next_step(pulling);
    if (!more) return std::move(more.failure());
    at_ = std::min<std::size_t>(passed, ready_);
    return {};
  }

 private:
  Result<bool> next_step(Pulling& pulling) {
    before_ = {};
    steps_->save(before_);
    at_ = ready_ = 0;
    auto more = steps_->pull(step_, pulling);
    if (!more || !*more) return more;
    const BlockView pulled = step_.buffer->rows(0, step_.rows);
    rows_.reserve(step_.rows);
    auto kept = run_stage(*flow_.leaves_[step_.leaf], {turn_, 0, &pulled},
                          rows_.rows(0, step_.rows), pulling);
    if (!kept) return std::move(kept.failure());
    ready_ = *kept;
    return true;
  }

  const UnbatchFlow& flow_;
  const Turn turn_;
  StepCursorPtr steps_;
  PulledStep step_;
  RowBuffer rows_;
  Anchor before_;
  std::size_t ready_ = 0;
  std::size_t at_ = 0;
};

CursorPtr UnbatchFlow::open(Turn turn) const {
  return std::make_unique<UnbatchCursor>(*this, turn);
}

StepFlowPtr slice(StepFlowPtr input, StepSlice wanted) {
  return std::make_unique<SliceFlow>(std::move(input), wanted);
}

}  // namespace

StepFlowPtr batch_flow(FlowPtr input, StreamBatch shape) {
  return std::make_unique<BatchFlow>(std::move(input), shape);
}
StepFlowPtr indexed_steps_flow(std::vector<StagePtr> leaves, Steps steps,
                               std::uint32_t first_leaf) {
  return std::make_unique<NumberedFlow<StagePtr>>(std::move(leaves), std::move(steps), first_leaf);
}
StepFlowPtr sequence_steps_flow(std::vector<SequenceLeaf> leaves, Steps steps,
                                std::uint32_t first_leaf) {
  return std::make_unique<NumberedFlow<SequenceLeaf>>(std::move(leaves), std::move(steps),
                                                      first_leaf);
}
StepFlowPtr take_steps_flow(StepFlowPtr input, std::uint64_t count) {
  return slice(std::move(input), {0, 1, count});
}
StepFlowPtr skip_steps_flow(StepFlowPtr input, std::uint64_t count) {
  return slice(std::move(input), {count, 1, UINT64_MAX});
}
StepFlowPtr shard_steps_flow(StepFlowPtr input, std::uint64_t count, std::uint64_t index) {
  return slice(std::move(input), {index, count, UINT64_MAX});
}
StepFlowPtr repeat_steps_flow(StepFlowPtr input, std::uint64_t rounds) {
  std::vector<StepFlowPtr> parts;
  parts.push_back(std::move(input));
  return std::make_unique<ChainFlow>(std::move(parts), rounds);
}
StepFlowPtr concatenate_steps_flow(std::vector<StepFlowPtr> parts) {
  return std::make_unique<ChainFlow>(std::move(parts), 1);
}
FlowPtr unbatch_flow(StepFlowPtr steps, std::vector<StagePtr> leaves, const ElementSpec& spec) {
  IdSpace ids;
  for (const StagePtr& leaf : leaves)
    ids.parts.insert(ids.parts.end(), leaf->ids().parts.begin(), leaf->ids().parts.end());
  return std::make_unique<UnbatchFlow>(std::move(steps), std::move(leaves), spec, std::move(ids));
}

}  // namespace penstock
