#pragma once
// Indexed data as a stream.

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/cursor.h"
#include "plan/stage.h"
#include "source/sequence.h"

namespace penstock {

/// The rows of an indexed dataset, in order; `size` or kEndless.
FlowPtr indexed_flow(StagePtr stage, std::uint64_t size);

/// The steps of indexed data; `leaves[i]` computes the rows of batch node i, which is leaf
/// `first_leaf + i` of the stream.
StepFlowPtr indexed_steps_flow(std::vector<StagePtr> leaves, Steps steps, std::uint32_t first_leaf);

/// The batches of Sequences, each requested when it is pulled.
struct SequenceLeaf {
  std::shared_ptr<SequenceSource> source;
  std::uint64_t first_id = 0;
};
StepFlowPtr sequence_steps_flow(std::vector<SequenceLeaf> leaves, Steps steps,
                                std::uint32_t first_leaf);

}  // namespace penstock
