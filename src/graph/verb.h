#pragma once
// What a verb must answer. A node of a dataset holds one; graph/ and plan/ ask these questions and
// know no verb by name. The verbs themselves are in verb/, one file each.

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

/// Yes-or-no facts about one node; its inputs answer for themselves.
struct Facts {
  bool is_leaf = false;       // batches begin here
  bool counts_steps = false;  // after batch: it depends on how samples are grouped into steps
  bool hides_rows = false;    // after batch: rows cannot be found by their number any more
  bool keeps_rows = false;    // after batch: the rows of each step stay the same samples
  bool sees_batches = false;  // its function takes whole batches
  bool unbatches = false;     // turns steps back into samples
  bool appends = false;       // its inputs come one after the other
  bool caches = false;        // later passes repeat what the first one gave
  bool reshuffles = false;    // the order differs from pass to pass
  bool draws_seed = false;    // its seed is drawn when a loader starts
  bool copies = false;        // delivers samples more than once
  bool unresolved = false;    // which samples it has is known only after resolve()
  std::uint64_t rounds = 1;   // how often its input comes
};

/// Where batches count for the order digest: below an unbatch the batch size decides which samples
/// a drop leaves out, and no default tail applies.
struct Counting {
  bool batch_counts = false;
  std::optional<Tail> tail;  // where a batch names none
};

/// Numbers the leaves of a batched dataset while its steps are computed.
struct StepsWalk {
  std::optional<Tail> tail;      // where a batch names none
  std::uint64_t drawn_seed = 0;  // stands for seeds that are drawn
  std::vector<const Node*> leaves = {};

  Steps of(const Node& node);
  /// The steps of `node`, which begins batches.
  Steps leaf(const Node& node, const Groups& groups);
};

/// How a node is used, for what it promises about its samples.
struct Delivery {
  std::optional<Tail> tail;  // where a batch names none
  bool unbatched = false;    // its rows become samples again: repeats of a wrap count
};

/// Immutable. Whoever derives from this class directly answers everything; verb/kinds.h has bases
/// for hints, for verbs that only choose or reorder, for sources, and for verbs of samples.
class Verb {
 public:
  Verb() = default;
  virtual ~Verb() = default;
  Verb(const Verb&) = delete;
  Verb& operator=(const Verb&) = delete;

  // In words
  [[nodiscard]] virtual Words words() const = 0;
  [[nodiscard]] virtual Facts facts(const Node& node) const = 0;
  /// Adds this node, after its inputs, to what the order digest is computed from.
  virtual void add_order(const Node& node, const Counting& counting,
                         std::vector<std::string>& lines) const = 0;
  /// Adds this node, without its inputs, to the digest of the values.
  virtual void add_values(const Node& node, Digest& digest) const = 0;

  // Built again
  /// The arguments for the catalogue; throws ConfigError where they cannot be sent as text.
  [[nodiscard]] virtual Json arguments() const = 0;
  /// The same verb on other inputs, with the checks of a new one.
  [[nodiscard]] virtual Dataset apply(const Node& node,
                                      const std::vector<Dataset>& inputs) const = 0;

  // Compiled
  /// The samples by position. Their ids begin at `first_id`.
  [[nodiscard]] virtual StagePtr samples(Compiler& compiler, const Node& node,
                                         std::uint64_t first_id) const = 0;
  /// The samples of a stream, one after the other.
  [[nodiscard]] virtual FlowPtr flow(Compiler& compiler, const Node& node,
                                     std::uint64_t first_id) const = 0;
  /// Like `flow`, without the maps that nothing in the sequence looks at: they are added to
  /// `deferred`, run in parallel after it, and not at all for rows that a resume skips.
  [[nodiscard]] virtual FlowPtr flow_before_maps(Compiler& compiler, const Node& node,
                                                 std::uint64_t first_id,
                                                 std::vector<Deferred>& deferred) const;
  /// One chain for each leaf of a batched node.
  [[nodiscard]] virtual std::vector<LeafProgram> chains(Compiler& compiler, const Node& node,
                                                        std::uint64_t first_id) const = 0;
  /// The steps of a batched stream; adds the chains of its leaves to `chains`.
  [[nodiscard]] virtual StepFlowPtr step_flow(Compiler& compiler, const Node& node,
                                              std::uint64_t first_id, std::optional<Tail> tail,
                                              std::vector<LeafProgram>& chains) const = 0;
  /// What it does to the steps of its input, or the steps that begin here.
  [[nodiscard]] virtual Steps steps(const Node& node, StepsWalk& walk) const = 0;
  /// How often each sample comes at most, for Plan::check.
  [[nodiscard]] virtual Promise promise(const Node& node, const Delivery& delivery) const = 0;

  // Asked of few
  /// The ids that are set aside for its samples; where the ids of what follows begin.
  [[nodiscard]] virtual std::uint64_t id_space(const Node& node) const;
  /// The function it applies, or null.
  [[nodiscard]] virtual std::shared_ptr<const Op> op() const { return nullptr; }
  /// The name under which another process finds its data or its dataset function.
  [[nodiscard]] virtual std::string name() const { return {}; }
  /// How a batch node groups the samples of its input. `tail` applies where it names none.
  [[nodiscard]] virtual std::optional<Groups> groups(const Node& /*node*/,
                                                     std::optional<Tail> /*tail*/) const {
    return std::nullopt;
  }
  /// The classes of labeled data; empty elsewhere.
  [[nodiscard]] virtual std::vector<std::string> class_names() const { return {}; }
  /// Options and limits for the run.
  virtual void add_hints(Hints& /*hints*/) const {}
};

}  // namespace penstock
