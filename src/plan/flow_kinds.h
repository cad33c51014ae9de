#pragma once
// The two kinds of stream elements, rows and whole steps, so that verbs for both are written once.
// A cursor over `Kind` implements `next(out, pulling)`, which returns how many it wrote.

#include <cstdint>
#include <memory>
#include <utility>

#include "plan/cursor.h"
#include "sample/rows.h"

namespace penstock {

struct OverRows {
  using Input = Cursor;
  using InputFlow = Flow;
  using Out = const BlockView&;
  using Pulled = Result<std::size_t>;

  static std::size_t size(Out out) { return out.rows; }
  static Pulled pulled(Result<std::size_t> count) { return count; }
  /// Writes up to `count` rows, starting at row `first` of `out`.
  static Result<std::size_t> pull(Cursor& from, Out out, std::size_t first, std::size_t count,
                                  Pulling& pulling) {
    const Scratch::Frame frame(pulling.context.scratch);
    return from.pull(cut_rows(out, first, count, pulling.context.scratch), pulling);
  }
  /// Like `pull`, for a flow whose rows may have another spec.
  static Result<std::size_t> pull_as(const Flow& flow, Cursor& from, Out out, std::size_t first,
                                     Pulling& pulling) {
    const Scratch::Frame frame(pulling.context.scratch);
    return penstock::pull_as(from, flow.spec(),
                             cut_rows(out, first, out.rows - first, pulling.context.scratch),
                             pulling);
  }
};

struct OverSteps {
  using Input = StepCursor;
  using InputFlow = StepFlow;
  using Out = PulledStep&;
  using Pulled = Result<bool>;

  static std::size_t size(Out) { return 1; }
  static Pulled pulled(Result<std::size_t> count) {
    if (!count) return std::move(count.failure());
    return *count > 0;
  }
  static Result<std::size_t> pull(StepCursor& from, Out step, std::size_t, std::size_t,
                                  Pulling& pulling) {
    auto more = from.pull(step, pulling);
    if (!more) return std::move(more.failure());
    return std::size_t{*more ? 1U : 0U};
  }
  static Result<std::size_t> pull_as(const StepFlow&, StepCursor& from, Out step, std::size_t,
                                     Pulling& pulling) {
    return pull(from, step, 0, 1, pulling);
  }
};

/// A flow with one input. Its cursor is a `Made(input flow, turn, facts...)`, which may refer to
/// the facts.
template <typename Base, typename InputFlow, typename Made, typename... Facts>
class OneInputFlow final : public Base {
 public:
  template <typename... BaseArguments>
  explicit OneInputFlow(std::unique_ptr<const InputFlow> input, std::tuple<Facts...> facts,
                        BaseArguments&&... base)
      : Base(std::forward<BaseArguments>(base)...),
        input_(std::move(input)),
        facts_(std::move(facts)) {}
  [[nodiscard]] auto open(Turn turn) const -> decltype(std::declval<Base>().open(turn)) override {
    return std::apply(
        [&](const Facts&... facts) { return std::make_unique<Made>(*input_, turn, facts...); },
        facts_);
  }

 private:
  const std::unique_ptr<const InputFlow> input_;
  const std::tuple<Facts...> facts_;
};

/// Rows of `spec` with ids of their own, from rows or from steps.
template <typename Made, typename InputFlow, typename... Facts>
FlowPtr rows_over(std::unique_ptr<const InputFlow> input, const ElementSpec& spec, IdSpace ids,
                  Facts... facts) {
  return std::make_unique<OneInputFlow<Flow, InputFlow, Made, Facts...>>(
      std::move(input), std::tuple<Facts...>(std::move(facts)...), spec, std::move(ids));
}
/// Rows of `spec` with the ids of the input's rows.
template <typename Made, typename... Facts>
FlowPtr same_rows_over(FlowPtr input, const ElementSpec& spec, Facts... facts) {
  IdSpace ids = input->ids();
  return rows_over<Made>(std::move(input), spec, std::move(ids), std::move(facts)...);
}
/// Steps, from rows or from steps.
template <typename Made, typename InputFlow, typename... Facts>
StepFlowPtr steps_over(std::unique_ptr<const InputFlow> input, Facts... facts) {
  return std::make_unique<OneInputFlow<StepFlow, InputFlow, Made, Facts...>>(
      std::move(input), std::tuple<Facts...>(std::move(facts)...));
}

using RowCursor = CursorOver<Cursor, Cursor>;
using SharedStage = std::shared_ptr<const Stage>;

}  // namespace penstock
