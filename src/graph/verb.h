#pragma once
// The interface of a verb. Each node of a dataset holds a verb; graph/ and plan/ use only this
// interface and know no verb by name. The verbs themselves are in verb/, one file each.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/json.h"
#include "op/op.h"
#include "order/steps.h"
#include "penstock/dataset.h"
#include "source/sequence.h"

namespace penstock {

class Compiler;
class Flow;
class Node;
class Stage;
class StepFlow;
struct LeafProgram;
struct Deferred;
struct Hints;
struct Promise;
using FlowPtr = std::unique_ptr<const Flow>;
using StagePtr = std::unique_ptr<const Stage>;
using StepFlowPtr = std::unique_ptr<const StepFlow>;

/// The word users write, "shuffle", and the node on one line, "shuffle(seed=7)".
struct Words {
  std::string word;
  std::string line;
};

/// Boolean facts about one node, not about its inputs.
struct Facts {
  bool is_leaf = false;       // batches begin here
  bool counts_steps = false;  // after batch: depends on how samples are grouped into steps
  bool hides_rows = false;    // after batch: rows can no longer be found by number
  bool keeps_rows = false;    // after batch: each step still has the same samples as rows
  bool sees_batches = false;  // its function takes whole batches
  bool unbatches = false;     // turns steps back into samples
  bool appends = false;       // delivers its inputs one after the other
  bool caches = false;        // later passes repeat the results of the first
  bool reshuffles = false;    // the order differs from pass to pass
  bool draws_seed = false;    // draws its seed when a loader starts
  bool copies = false;        // delivers samples more than once
  bool unresolved = false;    // its samples are known only after resolve()
  std::uint64_t rounds = 1;   // how many times it traverses its input
};

/// Whether batches are part of the order digest. Below an unbatch they are: the batch size decides
/// which samples a drop leaves out, and no default tail applies.
struct Counting {
  bool batch_counts = false;
  std::optional<Tail> tail;  // for a batch without one
};

/// Numbers the leaves of a batched dataset while its steps are computed.
struct StepsWalk {
  std::optional<Tail> tail;      // for a batch without one
  std::uint64_t drawn_seed = 0;  // replaces random seeds
  std::vector<const Node*> leaves = {};

  Steps of(const Node& node);
  /// The steps of `node`, a leaf.
  Steps leaf(const Node& node, const Groups& groups);
};

/// How a node is used; decides what it promises about its samples.
struct Delivery {
  std::optional<Tail> tail;  // for a batch without one
  bool unbatched = false;    // its rows become samples again, so a wrap delivers some twice
};

/// Immutable. A class that derives directly from this one implements everything; verb/kinds.h has
/// bases for hints, for verbs that only choose or reorder, for sources, and for verbs of samples.
class Verb {
 public:
  Verb() = default;
  virtual ~Verb() = default;
  Verb(const Verb&) = delete;
  Verb& operator=(const Verb&) = delete;

  // Description
  [[nodiscard]] virtual Words words() const = 0;
  [[nodiscard]] virtual Facts facts(const Node& node) const = 0;
  /// Adds this node, after its inputs, to the lines of the order digest.
  virtual void add_order(const Node& node, const Counting& counting,
                         std::vector<std::string>& lines) const = 0;
  /// Adds this node, without its inputs, to the digest of the values.
  virtual void add_values(const Node& node, Digest& digest) const = 0;

  // Serialization
  /// The arguments for the catalogue; throws ConfigError if they cannot be written as text.
  [[nodiscard]] virtual Json arguments() const = 0;
  /// The same verb on other inputs, with the checks of a new node.
  [[nodiscard]] virtual Dataset apply(const Node& node,
                                      const std::vector<Dataset>& inputs) const = 0;

  // Compilation
  /// The samples by position. Their ids start at `first_id`.
  [[nodiscard]] virtual StagePtr samples(Compiler& compiler, const Node& node,
                                         std::uint64_t first_id) const = 0;
  /// The samples of a stream, one after the other.
  [[nodiscard]] virtual FlowPtr flow(Compiler& compiler, const Node& node,
                                     std::uint64_t first_id) const = 0;
  /// Like `flow`, without the maps whose results the sequence does not need. They are added to
  /// `deferred` and run in parallel after it, but not for rows that a resume skips.
  [[nodiscard]] virtual FlowPtr flow_before_maps(Compiler& compiler, const Node& node,
                                                 std::uint64_t first_id,
                                                 std::vector<Deferred>& deferred) const;
  /// One chain per leaf of a batched node.
  [[nodiscard]] virtual std::vector<LeafProgram> chains(Compiler& compiler, const Node& node,
                                                        std::uint64_t first_id) const = 0;
  /// The steps of a batched stream; adds the chains of its leaves to `chains`.
  [[nodiscard]] virtual StepFlowPtr step_flow(Compiler& compiler, const Node& node,
                                              std::uint64_t first_id, std::optional<Tail> tail,
                                              std::vector<LeafProgram>& chains) const = 0;
  /// The steps of this node, computed from the steps of its input or, for a leaf, from its samples.
  [[nodiscard]] virtual Steps steps(const Node& node, StepsWalk& walk) const = 0;
  /// How often each sample is delivered at most, for Plan::check.
  [[nodiscard]] virtual Promise promise(const Node& node, const Delivery& delivery) const = 0;

  // For some verbs only
  /// The number of ids reserved for its samples; the ids of the next node start after them.
  [[nodiscard]] virtual std::uint64_t id_space(const Node& node) const;
  /// The function it applies, or null.
  [[nodiscard]] virtual std::shared_ptr<const Op> op() const { return nullptr; }
  /// What has been computed and stored so far, for `describe`: "12 of 100 rows on disk".
  [[nodiscard]] virtual std::string progress(const Node& /*node*/) const { return {}; }
  /// The name by which another process finds its data or its dataset function.
  [[nodiscard]] virtual std::string name() const { return {}; }
  /// How a batch node groups the samples of its input. `tail` applies if the node has none.
  [[nodiscard]] virtual std::optional<Groups> groups(const Node& /*node*/,
                                                     std::optional<Tail> /*tail*/) const {
    return std::nullopt;
  }
  /// The classes of labeled data; otherwise empty.
  [[nodiscard]] virtual std::vector<std::string> class_names() const { return {}; }
  /// Options and limits for the run.
  virtual void add_hints(Hints& /*hints*/) const {}
};

}  // namespace penstock
