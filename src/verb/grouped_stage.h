#pragma once
// A stage whose rows are made of several rows of its input.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/cancelled.h"
#include "plan/compiler.h"
#include "plan/failures.h"
#include "plan/stage.h"

namespace penstock {

class GroupedStage : public Stage {
 public:
  void identify(const Ask& ask, std::uint64_t* ids, const Context&) const final {
    for (std::size_t i = 0; i < ask.positions.size(); ++i) ids[i] = first_id_ + ask.positions[i];
  }

 protected:
  /// The rows have ids of their own, from `place` on. `title` is the op of failures without one.
  GroupedStage(ElementSpec spec, StagePtr input, SourcePlace place, std::string title)
      : Stage(std::move(spec), IdSpace{{{place.first_id, place.ordinal, nullptr}}}),
        input_(std::move(input)),
        first_id_(place.first_id),
        title_(std::move(title)) {}

  /// Writes row `number` of the stage to row `row` of `out`.
  virtual Result<void> write(Turn turn, std::uint64_t number, const BlockView& out, std::size_t row,
                             const Context& context) const = 0;

  /// The failure of row `row` of the input.
  [[nodiscard]] Failure at_input(Failure failure, const BlockView& rows, std::size_t row) const {
    failure.row = row;
    return at_sample(std::move(failure), input_->ids(), rows);
  }
  /// Fails if a row of the input is masked: it cannot be left out of a group.
  [[nodiscard]] Result<void> refuse_masked(const BlockView& rows) const {
    const std::size_t good = good_rows_in({rows.identity.failed, rows.rows});
    if (good == rows.rows) return {};
    return at_input({"a filter masks this sample, which cannot be left out of its row",
                     {},
                     "use select() instead of filter() with mask"},
                    rows, good);
  }

  Result<void> run(const Ask& ask, const BlockView& out, const Context& context) const final {
    identify(ask, out.identity.sample_id, context);
    if (out.identity.occurrence != nullptr)
      std::fill_n(out.identity.occurrence, out.rows, ask.turn.occurrence());
    return for_good_rows(out, ids(), [&](std::size_t first, std::size_t rows) -> Result<void> {
      for (std::size_t row = first; row < first + rows; ++row) {
        if (!context.at_sample(out.identity.sample_id[row])) return cancelled(row - first);
        auto done = write(ask.turn, ask.positions[row], out, row, context);
        if (done) continue;
        done.failure().row = row - first;
        if (done.failure().where.op.empty()) done.failure().where.op = title_;
        return done;
      }
      return {};
    });
  }

  const StagePtr input_;

 private:
  const std::uint64_t first_id_;
  const std::string title_;
};

}  // namespace penstock
