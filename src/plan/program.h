#pragma once
// A batched dataset, compiled: its steps, and for each batch node the chain that makes its samples.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/node.h"
#include "order/steps.h"
#include "plan/cursor.h"
#include "plan/stage.h"
#include "plan/stages.h"

namespace penstock {

/// A function of whole global batches, after the samples of a step are there.
struct WholeOp {
  std::shared_ptr<const Op> op;
  ElementSpec spec;  // of a row of its result
  MapPlace place;
};

/// How the rows of one leaf, a batch node or a Sequence, are computed.
struct LeafProgram {
  StagePtr samples;
  std::vector<WholeOp> whole;
  std::shared_ptr<SequenceSource> sequence = {};  // whose batches are asked for, if it is one
  std::uint64_t first_id = 0;                     // of its rows
};

struct Program {
  Steps steps;
  std::vector<LeafProgram> chains;         // by batch node
  ElementSpec spec;                        // of a row of the batches
  bool random = false;                     // some op needs to know occurrences
  std::vector<std::string> notes = {};     // for the plan: what is unused or may surprise
  std::vector<std::string> warnings = {};  // what is likely a mistake
  bool masks = false;                      // some rows may be marked as not wanted
  bool long_blocks = false;                // some op prefers long blocks
  std::size_t rows_at_once = 0;  // the most that some op works on at once, outside our threads
  StepFlowPtr stream = nullptr;  // of a stream: what pulls its steps; `steps` is then empty
};

struct CompileOptions {
  std::optional<Tail> tail;
  std::uint64_t drawn_seed = 0;
  bool draws = false;  // the seed was drawn, or given: datasets of elements may use it
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
