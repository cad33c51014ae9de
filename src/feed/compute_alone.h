#pragma once
// Computes rows in the calling thread, without a pass, into a batch of their own.

#include <cstdint>
#include <memory>
#include <optional>

#include "order/geometry.h"
#include "plan/plan_data.h"
#include "sample/batch_data.h"
#include "source/sequence.h"

namespace penstock {

/// Which rows of which step; the facts become those of the batch.
struct RowsWanted {
  Place place;
  std::uint64_t first_row = 0;
  ShareFacts facts;
  const BlockView* pulled = nullptr;  // for a stream: the rows of the step
};
/// `spec` is the rows' spec where the plan does not know it. Throws SampleError.
std::shared_ptr<BatchData> compute_alone(const PlanData& plan, const RowsWanted& wanted,
                                         const ElementSpec& spec);

/// `place`, or for a Sequence the place of the rows of its batch, which is requested.
Place asked_place(const PlanData& plan, const Place& place, SequenceBatch& batch);

/// One row of a step as a sample; if the spec is unknown before running.
Sample compute_row(const PlanData& plan, const Place& place, std::uint64_t row,
                   const BlockView* pulled = nullptr);

}  // namespace penstock
