#pragma once
// Computes rows in the calling thread, without a pass, into a separate batch.

#include <cstdint>
#include <memory>
#include <optional>

#include "order/geometry.h"
#include "plan/plan_data.h"
#include "sample/batch_data.h"
#include "source/sequence.h"

namespace penstock {

/// The requested rows of a step; the facts become those of the batch.
struct RowsWanted {
  Place place;
  std::uint64_t first_row = 0;
  ShareFacts facts;
  const BlockView* pulled = nullptr;  // for a stream: the rows of the step
};
/// `spec` is the spec of the rows if the plan does not know it. Throws SampleError.
std::shared_ptr<BatchData> compute_alone(const PlanData& plan, const RowsWanted& wanted,
                                         const ElementSpec& spec);

/// Returns `place`; for a Sequence requests its batch and returns the place of its rows.
Place asked_place(const PlanData& plan, const Place& place, SequenceBatch& batch);

/// Computes one row of a step as a sample; used if the spec is unknown before running.
Sample compute_row(const PlanData& plan, const Place& place, std::uint64_t row,
                   const BlockView* pulled = nullptr);

}  // namespace penstock
