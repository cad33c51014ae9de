#pragma once
// Computing rows of a step, in the calling thread, without a loader.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "order/steps.h"
#include "penstock/block.h"
#include "penstock/result.h"
#include "plan/program.h"

namespace penstock {

/// Asks the Sequence that the step at `place` is a batch of; `step` is its number, for errors.
Result<void> ask_sequence(const Program& program, const Place& place,
                          std::optional<std::uint64_t> step, SequenceBatch& batch,
                          const Context& context);

/// True when the step must be computed as a whole because a function wants to see all of it.
bool is_whole(const Program& program, const Place& place);

/// Rows [first_row, first_row + out.rows) of the step at `place`. Not for whole steps.
/// Of a stream `pulled` holds the rows of the step.
Result<void> compute_rows(const Program& program, const Place& place, std::uint64_t first_row,
                          const BlockView& out, const Context& context,
                          const BlockView* pulled = nullptr);

/// Rows at consecutive positions of one order, computed at once and then copied to `outs`, which
/// are of one spec and dense. `place.count` is the number of rows of all of them.
Result<void> compute_together(const Program& program, const Place& place,
                              std::span<const BlockView> outs, const Context& context);

/// What must be read for rows [first_row, first_row + rows), as far as that shows beforehand.
void collect_reads(const Program& program, const Place& place, std::uint64_t first_row,
                   std::uint64_t rows, std::vector<PlannedRead>& reads, const Context& context);

/// A part of a step and where its rows go, flags of failed rows included.
struct Destination {
  std::uint64_t first_row = 0;
  const BlockView* rows = nullptr;
};
/// The whole step, then its parts to their destinations.
Result<void> compute_step(const Program& program, const Place& place,
                          std::span<const Destination> destinations, const Context& context,
                          const BlockView* pulled = nullptr);

}  // namespace penstock
