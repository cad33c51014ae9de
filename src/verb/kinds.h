#pragma once
// Base classes for kinds of verbs, with suitable implementations. If none fits, derive from Verb
// directly: the compiler then requires every function.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/make_node.h"
#include "graph/verb.h"
#include "plan/compiler.h"
#include "plan/promise.h"

namespace penstock {

/// Changes nothing about the elements: prefetch, with_options.
class Hint : public Verb {
 public:
  [[nodiscard]] Facts facts(const Node&) const override { return {.keeps_rows = true}; }
  void add_order(const Node& node, const Counting& counting,
                 std::vector<std::string>& lines) const override;
  void add_values(const Node&, Digest&) const override {}
  [[nodiscard]] Dataset apply(const Node& node, const std::vector<Dataset>& inputs) const override;
  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override;
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node& node,
                             std::uint64_t first_id) const override;
  [[nodiscard]] FlowPtr flow_before_maps(Compiler& compiler, const Node& node,
                                         std::uint64_t first_id,
                                         std::vector<Deferred>& deferred) const override;
  [[nodiscard]] std::vector<LeafProgram> chains(Compiler& compiler, const Node& node,
                                                std::uint64_t first_id) const override;
  [[nodiscard]] StepFlowPtr step_flow(Compiler& compiler, const Node& node, std::uint64_t first_id,
                                      std::optional<Tail> tail,
                                      std::vector<LeafProgram>& chains) const override;
  [[nodiscard]] Steps steps(const Node& node, StepsWalk& walk) const override;
  [[nodiscard]] Promise promise(const Node& node, const Delivery& delivery) const override;
};

/// Chooses or reorders elements without reading them: take, skip, shard, shuffle, repeat.
/// Implements how samples, rows of a stream and steps of a stream move; the rest is implemented
/// here.
class Move : public Hint {
 public:
  [[nodiscard]] Facts facts(const Node& node) const override = 0;
  [[nodiscard]] Dataset apply(const Node& node,
                              const std::vector<Dataset>& inputs) const override = 0;
  [[nodiscard]] Steps steps(const Node& node, StepsWalk& walk) const override = 0;
  void add_order(const Node& node, const Counting& counting,
                 std::vector<std::string>& lines) const override;
  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override;
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node& node,
                             std::uint64_t first_id) const override;
  [[nodiscard]] FlowPtr flow_before_maps(Compiler& compiler, const Node& node,
                                         std::uint64_t first_id,
                                         std::vector<Deferred>& deferred) const override;
  [[nodiscard]] StepFlowPtr step_flow(Compiler& compiler, const Node& node, std::uint64_t first_id,
                                      std::optional<Tail> tail,
                                      std::vector<LeafProgram>& chains) const override;

 protected:
  /// `input_size` is kEndless for endless data.
  [[nodiscard]] virtual StagePtr move(StagePtr input, std::uint64_t input_size,
                                      const Compiler& compiler) const = 0;
  [[nodiscard]] virtual FlowPtr move(FlowPtr input, const Compiler& compiler) const = 0;
  [[nodiscard]] virtual StepFlowPtr move(StepFlowPtr input) const = 0;
};

/// Works on samples only; its Dataset function rejects batches. Implements either `samples`, for
/// indexed data, or `flow`, for streams; the other one is unreachable and keeps this
/// implementation.
class OnSamples : public Verb {
 public:
  void add_order(const Node& node, const Counting& counting,
                 std::vector<std::string>& lines) const override;
  void add_values(const Node&, Digest&) const override {}
  [[nodiscard]] StagePtr samples(Compiler& compiler, const Node& node,
                                 std::uint64_t first_id) const override;
  [[nodiscard]] FlowPtr flow(Compiler& compiler, const Node& node,
                             std::uint64_t first_id) const override;
  [[nodiscard]] std::vector<LeafProgram> chains(Compiler& compiler, const Node& node,
                                                std::uint64_t first_id) const override;
  [[nodiscard]] StepFlowPtr step_flow(Compiler& compiler, const Node& node, std::uint64_t first_id,
                                      std::optional<Tail> tail,
                                      std::vector<LeafProgram>& chains) const override;
  [[nodiscard]] Steps steps(const Node& node, StepsWalk& walk) const override;
  /// The promise of the input; not exact if the number of elements differs.
  [[nodiscard]] Promise promise(const Node& node, const Delivery& delivery) const override;
};

/// A source: it has no inputs, and another process finds its data by name or by arguments.
class Origin : public OnSamples {
 public:
  [[nodiscard]] Facts facts(const Node&) const override { return {}; }
  /// The spec of the elements.
  void add_values(const Node& node, Digest& digest) const override;
  [[nodiscard]] Dataset apply(const Node& node, const std::vector<Dataset>& inputs) const override;
  [[nodiscard]] std::uint64_t id_space(const Node& node) const override = 0;
  [[nodiscard]] Promise promise(const Node& node, const Delivery& delivery) const override = 0;
};

/// "12", or `otherwise` if there is no number.
std::string number_or(const std::optional<std::uint64_t>& number, const char* otherwise);
/// Returns nothing for -1 ("all" or "for ever"); throws ConfigError for smaller numbers.
std::optional<std::uint64_t> count_or_all(const char* word, std::int64_t count);
/// As users write it: -1 if there is no number.
std::int64_t written_count(const std::optional<std::uint64_t>& count);
/// Returns the name of a function or of data; throws ConfigError if it has none and cannot be
/// serialized.
std::string required_name(const std::string& word, const std::string& name);

}  // namespace penstock
