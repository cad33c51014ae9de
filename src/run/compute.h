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
#include "sample/batch_data.h"

namespace penstock {

/// Requests the batch of a Sequence that the step at `place` is; `step` is its number, for errors.
Result<void> ask_sequence(const Program& program, const Place& place,
                          std::optional<std::uint64_t> step, SequenceBatch& batch,
                          const Context& context);

/// True if the step must be computed as a whole because a function needs all of its rows.
bool is_whole(const Program& program, const Place& place);
/// How the rows of the step become batches.
BatchForm form_of(const Program& program, const Place& place);

/// Computes rows [first_row, first_row + out.rows) of the step at `place`. Not for whole steps. For
/// a stream, `pulled` holds the rows of the step.
Result<void> compute_rows(const Program& program, const Place& place, std::uint64_t first_row,
                          const BlockView& out, const Context& context,
                          const BlockView* pulled = nullptr);

/// Computes rows at consecutive positions of one order in one call, then copies them to `outs`,
/// which have one spec and are dense. `place.count` is the total number of rows.
Result<void> compute_together(const Program& program, const Place& place,
                              std::span<const BlockView> outs, const Context& context);

/// The files to read for rows [first_row, first_row + rows), if they are known in advance.
void collect_reads(const Program& program, const Place& place, std::uint64_t first_row,
                   std::uint64_t rows, std::vector<PlannedRead>& reads, const Context& context);

/// A part of a step, and where to write its rows and the flags of failed ones.
struct Destination {
  std::uint64_t first_row = 0;
  const BlockView* rows = nullptr;
};
/// Computes the whole step, then copies its parts to their destinations.
Result<void> compute_step(const Program& program, const Place& place,
                          std::span<const Destination> destinations, const Context& context,
                          const BlockView* pulled = nullptr);

}  // namespace penstock
