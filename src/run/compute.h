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
#include "sample/scratch.h"

namespace penstock {

/// The calling thread's memory for what lives while one block is computed.
Scratch& thread_scratch();

/// Asks the Sequence that the step at `place` is a batch of; `step` is its number, for errors.
Result<void> ask_sequence(const Program& program, const Place& place,
                          std::optional<std::uint64_t> step, SequenceBatch& batch);

/// True when the step must be computed as a whole because a function wants to see all of it.
bool is_whole(const Program& program, const Place& place);

/// Rows [first_row, first_row + out.rows) of the step at `place`. Not for whole steps.
/// Of a stream `pulled` holds the rows of the step.
Result<void> compute_rows(const Program& program, const Place& place, std::uint64_t first_row,
                          const BlockView& out, Scratch& scratch,
                          const BlockView* pulled = nullptr);

/// Rows at consecutive positions of one order, computed at once and then copied to `outs`, which
/// are of one spec and dense. `place.count` is the number of rows of all of them.
Result<void> compute_together(const Program& program, const Place& place,
                              std::span<const BlockView> outs, Scratch& scratch);

/// What must be read for rows [first_row, first_row + rows), as far as that shows beforehand.
void collect_reads(const Program& program, const Place& place, std::uint64_t first_row,
                   std::uint64_t rows, std::vector<PlannedRead>& reads, Scratch& scratch);

/// A part of a step and where its rows go, flags of failed rows included.
struct Destination {
  std::uint64_t first_row = 0;
  const BlockView* rows = nullptr;
};
/// The whole step, then its parts to their destinations.
Result<void> compute_step(const Program& program, const Place& place,
                          std::span<const Destination> destinations, Scratch& scratch,
                          const BlockView* pulled = nullptr);

}  // namespace penstock
