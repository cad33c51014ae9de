#pragma once
// The kinds of flows, one maker each.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/function.h"
#include "plan/cursor.h"
#include "plan/stages.h"
#include "source/sequence.h"

namespace penstock {

/// Ids that are set aside for what is numbered only as it is pulled.
inline constexpr std::uint64_t kStreamIds = 1ULL << 48;

// Where rows come from: source_flows.cc
struct GeneratorPlace {
  SourcePlace source;
  std::string title;
};
FlowPtr generator_flow(GeneratorFn fn, const ElementSpec& spec, GeneratorPlace place);
/// The rows of an indexed dataset, in order; `size` or kEndless.
FlowPtr indexed_flow(StagePtr stage, std::uint64_t size);

// What happens to rows: row_flows.cc
/// `stage` is made of ops over a pulled_stage.
FlowPtr map_flow(FlowPtr input, StagePtr stage);
/// `predicate` is a map to one bool over a pulled_stage.
FlowPtr filter_flow(FlowPtr input, StagePtr predicate);
FlowPtr take_while_flow(FlowPtr input, StagePtr predicate);
FlowPtr take_flow(FlowPtr input, std::uint64_t count);
FlowPtr skip_flow(FlowPtr input, std::uint64_t count);
FlowPtr shard_flow(FlowPtr input, std::uint64_t count, std::uint64_t index);
FlowPtr enumerate_flow(FlowPtr input, const ElementSpec& spec);

// Which rows: order_flows.cc
struct WindowOrder {
  std::uint64_t size = 1;
  std::uint64_t seed = 0;
  bool reshuffle = true;
};
FlowPtr window_flow(FlowPtr input, WindowOrder order);
FlowPtr repeat_flow(FlowPtr input, std::uint64_t rounds);
FlowPtr concatenate_flow(std::vector<FlowPtr> parts, const ElementSpec& spec);
FlowPtr zip_flow(std::vector<FlowPtr> parts, const ElementSpec& spec, bool strict);

// One element to many: expand_flows.cc
struct Expansion {
  /// The flow of one element's dataset; throws what the user's function throws.
  std::function<FlowPtr(const Sample& element)> open;
  std::uint64_t cycle = 1;
  std::uint64_t block = UINT64_MAX;
  std::string title;
};
FlowPtr expand_flow(FlowPtr input, Expansion expansion, const ElementSpec& spec, SourcePlace place);
/// The rows of elements that have several in their first dimension.
FlowPtr rows_flow(FlowPtr input, const ElementSpec& spec, SourcePlace place);

// Steps: step_flows.cc
struct StreamBatch {
  std::uint32_t leaf = 0;
  std::uint64_t size = 1;
  TailRule tail = TailRule::keep;  // or drop, or pad
};
StepFlowPtr batch_flow(FlowPtr input, StreamBatch shape);
/// The steps of indexed data; `leaves[i]` makes the rows of batch node i, which is leaf
/// `first_leaf + i` of the stream.
StepFlowPtr indexed_steps_flow(std::vector<StagePtr> leaves, Steps steps, std::uint32_t first_leaf);
/// The batches of Sequences, asked for as they are pulled.
struct SequenceLeaf {
  std::shared_ptr<SequenceSource> source;
  std::uint64_t first_id = 0;
};
StepFlowPtr sequence_steps_flow(std::vector<SequenceLeaf> leaves, Steps steps,
                                std::uint32_t first_leaf);
StepFlowPtr take_steps_flow(StepFlowPtr input, std::uint64_t count);
StepFlowPtr skip_steps_flow(StepFlowPtr input, std::uint64_t count);
StepFlowPtr shard_steps_flow(StepFlowPtr input, std::uint64_t count, std::uint64_t index);
StepFlowPtr repeat_steps_flow(StepFlowPtr input, std::uint64_t rounds);
StepFlowPtr concatenate_steps_flow(std::vector<StepFlowPtr> parts);
/// The rows of steps; `leaves[i]` makes the rows of batch node i from what was pulled.
FlowPtr unbatch_flow(StepFlowPtr steps, std::vector<StagePtr> leaves, const ElementSpec& spec);

}  // namespace penstock
