// tested in src/plan/program_test.cc
#include "plan/compiler.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fault.h"
#include "graph/tail.h"
#include "plan/flows.h"

namespace penstock {

FlowPtr Verb::flow_before_maps(Compiler& compiler, const Node& node, std::uint64_t first_id,
                               std::vector<Deferred>&) const {
  return compiler.flow(node, first_id);
}

FlowPtr Compiler::flow(const Node& node, std::uint64_t first_id) {
  if (node.stream) return node.verb->flow(*this, node, first_id);
  const std::uint64_t size = node.size.is_endless() ? kEndless : node.size.count();
  return indexed_flow(samples(node, first_id), size);
}

FlowPtr Compiler::flow_before_maps(const Node& node, std::uint64_t first_id,
                                   std::vector<Deferred>& deferred) {
  if (!node.stream) return flow(node, first_id);
  return node.verb->flow_before_maps(*this, node, first_id, deferred);
}

StepFlowPtr Compiler::step_flow(const Node& node, std::uint64_t first_id, std::optional<Tail> tail,
                                std::vector<LeafProgram>& chains) {
  if (!node.stream) return numbered_steps(node, first_id, tail, chains);
  return node.verb->step_flow(*this, node, first_id, tail, chains);
}

Tail stream_tail(const Node& batch, std::optional<Tail> tail) {
  const Tail rule = batch.groups(tail)->tail;
  if (rule != Tail::short_ && rule != Tail::drop && rule != Tail::pad)
    throw ConfigError(
        fmt::format("batch: tail={} needs the number of samples, which is unknown for a stream "
                    "until it ends",
                    tail_name(rule)),
        {}, "use tail short, pad or drop");
  return rule;
}

StepFlowPtr Compiler::numbered_steps(const Node& node, std::uint64_t first_id,
                                     std::optional<Tail> tail, std::vector<LeafProgram>& chains) {
  const auto first = static_cast<std::uint32_t>(chains.size());
  std::vector<LeafProgram> compiled = this->chains(node, first_id);
  StepsOf shape = steps_of(node, tail, options_.drawn_seed);
  std::vector<StagePtr> indexed;
  std::vector<SequenceLeaf> sequences;
  for (LeafProgram& chain : compiled) {
    if (chain.sequence) {
      sequences.push_back({std::exchange(chain.sequence, nullptr), chain.first_id});
      chains.push_back(std::move(chain));
    } else {
      chains.push_back(
          {pulled_stage(chain.samples->spec(), chain.samples->ids()), std::move(chain.whole)});
      chains.back().padding = std::move(chain.padding);
      indexed.push_back(std::move(chain.samples));
    }
  }
  if (!sequences.empty() && !indexed.empty())
    throw ConfigError("batches of a Sequence and other data are mixed in one stream", {},
                      "unbatch both, and batch the result");
  if (!sequences.empty())
    return sequence_steps_flow(std::move(sequences), std::move(shape.steps), first);
  for (const Node* leaf : shape.leaves) (void)stream_tail(*leaf, tail);
  return indexed_steps_flow(std::move(indexed), std::move(shape.steps), first);
}

MapPlace Compiler::place_of(const Op& op, std::uint64_t seed, const std::string& line) {
  MapPlace place{numbered(line), seed, random_ops_};
  if (op.random()) ++random_ops_;
  if (op.rows_at_once() > 0)
    note(fmt::format("{}: in {} worker processes", place.title, op.rows_at_once()));
  rows_at_once_ = std::max(rows_at_once_, op.rows_at_once());
  long_blocks_ = long_blocks_ || op.prefers_long_blocks();
  if (line.empty()) return place;  // it ran before this plan was made
  planned_.push_back({.title = place.title,
                      .random = op.random(),
                      .processes = static_cast<unsigned>(op.rows_at_once())});
  return place;
}

void Compiler::warn(std::string text) {
  if (std::ranges::find(warnings_, text) == warnings_.end()) warnings_.push_back(std::move(text));
}

std::string Compiler::numbered(const std::string& line) {
  return fmt::format("{}#{}", line, ops_++);
}

StepShuffle Compiler::shuffle_key(const Seed& seed, bool reshuffle) const {
  const bool drawn = seed.drawn || PENSTOCK_OFF("shuffle.shared");
  return {drawn ? options_.drawn_seed : seed.value, reshuffle && !PENSTOCK_OFF("shuffle.anew")};
}

void Compiler::finish(Program& program) {
  program.random = random_ops_ > 0;
  for (const LeafProgram& chain : program.chains)
    for (const WholeOp& op : chain.whole)
      for (trace::PlannedOp& planned : planned_)
        planned.whole = planned.whole || planned.title == op.place.title;
  program.ops = std::move(planned_);
  program.notes = std::move(notes_);
  program.warnings = std::move(warnings_);
  program.masks = masks_;
  program.rows_at_once = rows_at_once_;
  program.long_blocks = long_blocks_;
}

}  // namespace penstock
