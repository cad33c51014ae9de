#pragma once
// Turns a graph into stages and flows. Walks the graph once, inputs first, and numbers sources and
// ops in that order. Each verb compiles itself with the functions below.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plan/program.h"

namespace penstock {

/// A map that runs after the sequence of a stream, in parallel.
struct Deferred {
  std::shared_ptr<const Op> op;
  ElementSpec spec;
  MapPlace place;
};

class Compiler {
 public:
  explicit Compiler(const CompileOptions& options) : options_(options) {}

  // Compile a node and everything below it. Ids of its samples start at `first_id`.
  StagePtr samples(const Node& node, std::uint64_t first_id) {
    return node.verb->samples(*this, node, first_id);
  }
  std::vector<LeafProgram> chains(const Node& node, std::uint64_t first_id) {
    return node.verb->chains(*this, node, first_id);
  }
  FlowPtr flow(const Node& node, std::uint64_t first_id);
  FlowPtr flow_before_maps(const Node& node, std::uint64_t first_id,
                           std::vector<Deferred>& deferred);
  StepFlowPtr step_flow(const Node& node, std::uint64_t first_id, std::optional<Tail> tail,
                        std::vector<LeafProgram>& chains);

  // For verbs that compile themselves
  [[nodiscard]] const CompileOptions& options() const { return options_; }
  /// Numbers an op; `line` describes it in errors.
  MapPlace place_of(const Op& op, std::uint64_t seed, const std::string& line);
  /// "line#3", with the number of the next op.
  std::string numbered(const std::string& line);
  SourcePlace next_source(std::uint64_t first_id) { return {sources_++, first_id}; }
  /// The key of a shuffle: its own seed, or the drawn one.
  [[nodiscard]] StepShuffle shuffle_key(const Seed& seed, bool reshuffle) const;
  /// Sources and random ops so far; together with the first id they identify a place in the graph.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> counts() const {
    return {sources_, random_ops_};
  }
  /// Samples pass a cache here.
  void add_cache(std::string title, std::string random_below) {
    planned_.push_back(
        {.title = std::move(title), .cache = true, .repeats = std::move(random_below)});
  }
  void note(std::string text) { notes_.push_back(std::move(text)); }
  /// A warning that several parts of the graph give appears once.
  void warn(std::string text);
  /// While one exists that is `whole`, nodes are compiled whose samples are requested in random
  /// order over all of them.
  class RandomOrder {
   public:
    RandomOrder(Compiler& compiler, bool whole)
        : compiler_(compiler), before_(compiler.random_order_) {
      compiler.random_order_ = before_ || whole;
    }
    ~RandomOrder() { compiler_.random_order_ = before_; }
    RandomOrder(const RandomOrder&) = delete;
    RandomOrder& operator=(const RandomOrder&) = delete;

   private:
    Compiler& compiler_;
    const bool before_;
  };
  [[nodiscard]] bool random_order() const { return random_order_; }
  /// Declares that rows may be masked.
  void add_mask() { masks_ = true; }

  /// Moves the collected notes, warnings and flags to `program`.
  void finish(Program& program);

 private:
  StepFlowPtr numbered_steps(const Node& node, std::uint64_t first_id, std::optional<Tail> tail,
                             std::vector<LeafProgram>& chains);

  CompileOptions options_;
  std::uint32_t sources_ = 0;
  std::uint64_t ops_ = 0;
  std::uint64_t random_ops_ = 0;
  std::size_t rows_at_once_ = 0;
  bool long_blocks_ = false;
  std::vector<trace::PlannedOp> planned_;
  std::vector<std::string> notes_;
  std::vector<std::string> warnings_;
  bool masks_ = false;
  bool random_order_ = false;
};

/// The tail rule of a batch node in a stream. Throws ConfigError for policies that need the number
/// of samples.
Tail stream_tail(const Node& batch, std::optional<Tail> tail);

}  // namespace penstock
