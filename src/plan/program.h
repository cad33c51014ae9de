#pragma once
// A compiled batched dataset: its steps, and for each batch node the chain that computes its
// samples.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/node.h"
#include "order/steps.h"
#include "penstock/padding.h"
#include "plan/cursor.h"
#include "plan/stage.h"
#include "plan/stages.h"
#include "trace/recording.h"

namespace penstock {

/// A function of whole global batches, which runs when all samples of a step are computed.
struct WholeOp {
  std::shared_ptr<const Op> op;
  ElementSpec spec;  // of a row of its result
  MapPlace place;
};

/// How the rows of one leaf, a batch node or a Sequence, are computed.
struct LeafProgram {
  StagePtr samples;
  std::vector<WholeOp> whole;
  std::shared_ptr<SequenceSource> sequence = {};  // null for a batch node
  std::uint64_t first_id = 0;                     // of its rows
  std::shared_ptr<const Padding> padding = {};    // null: rows keep their sizes
};

struct Program {
  Steps steps;
  std::vector<LeafProgram> chains;         // by batch node
  ElementSpec spec;                        // of a row of the batches
  bool random = false;                     // some op needs occurrence numbers
  std::vector<std::string> notes = {};     // for the plan: unused or surprising settings
  std::vector<std::string> warnings = {};  // likely mistakes
  bool masks = false;                      // some rows may be masked
  bool long_blocks = false;                // some op prefers long blocks
  std::size_t rows_at_once = 0;  // the most that some op processes at once, outside our threads
  StepFlowPtr stream = nullptr;  // pulls the steps of a stream; `steps` is then empty
  std::vector<trace::PlannedOp> ops = {};  // for reports, in the order in which they are compiled
};

struct CompileOptions {
  std::optional<Tail> tail;
  std::uint64_t drawn_seed = 0;
  bool draws = false;  // the seed was drawn or passed in: datasets of elements may use it
};

/// `root` must be batched.
Program compile(const Node& root, const CompileOptions& options);
/// `root` must not be batched.
StagePtr compile_samples(const Node& root, const CompileOptions& options);
/// The rows of `root`, which must not be batched, in their order.
FlowPtr compile_flow(const Node& root, const CompileOptions& options);
/// True when some steps are batches of a Sequence.
bool has_sequence(const Program& program);

}  // namespace penstock
