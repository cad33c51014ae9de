#pragma once
// A stage that computes other positions of its one input.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "plan/stage.h"

namespace penstock {

using Positions = std::span<std::uint64_t>;

/// A stage that computes other positions of its one input; `Moving` is called as `moving(ask, input
/// positions)`.
template <typename Moving>
class MovedStage final : public Stage {
 public:
  MovedStage(StagePtr input, Moving moving)
      : Stage(input->spec(), input->ids()), input_(std::move(input)), moving_(std::move(moving)) {}
  void identify(const Ask& ask, std::uint64_t* ids, const Context& context) const override {
    const Scratch::Frame frame(context.scratch);
    input_->identify({ask.turn, moved(ask, context)}, ids, context);
  }
  void collect_reads(const Ask& ask, const Context& context,
                     std::vector<PlannedRead>& reads) const override {
    const Scratch::Frame frame(context.scratch);
    input_->collect_reads({ask.turn, moved(ask, context)}, context, reads);
  }

 protected:
  Result<void> run(const Ask& ask, const BlockView& out, const Context& context) const override {
    const Scratch::Frame frame(context.scratch);
    return input_->produce({ask.turn, moved(ask, context)}, out, context);
  }

 private:
  std::span<const std::uint64_t> moved(const Ask& ask, const Context& context) const {
    const std::span positions(context.scratch.array<std::uint64_t>(ask.positions.size()),
                              ask.positions.size());
    moving_(ask, positions);
    return positions;
  }

  StagePtr input_;
  Moving moving_;
};
template <typename Moving>
StagePtr moved_stage(StagePtr input, Moving moving) {
  return std::make_unique<MovedStage<Moving>>(std::move(input), std::move(moving));
}

}  // namespace penstock
