#pragma once
// The compiled form of sample-level nodes: a tree of stages. A stage computes the rows at given
// positions of its order and writes them to a block; the last stage writes to the batch.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "order/steps.h"
#include "penstock/block.h"
#include "penstock/result.h"
#include "source/context.h"
#include "source/source.h"

namespace penstock {

/// The first sample id of each source of a subtree, ascending.
struct IdSpace {
  struct Part {
    std::uint64_t first_id;
    std::uint32_t source;
    std::shared_ptr<const Source> origin = {};  // set for indexed data
  };
  std::vector<Part> parts;
  [[nodiscard]] SampleKey key(std::uint64_t sample_id) const;
  /// The file that contains the sample, or nothing.
  [[nodiscard]] std::string file_of(std::uint64_t sample_id) const;

 private:
  [[nodiscard]] const Part& part(std::uint64_t sample_id) const;
};

/// The requested rows: positions in the stage's order, in one turn.
struct Ask {
  Turn turn;
  std::span<const std::uint64_t> positions;
  const BlockView* pulled = nullptr;  // for a stream: the rows that positions refer to
};

/// Const, stateless and thread-safe.
class Stage {
 public:
  Stage(ElementSpec spec, IdSpace ids) : spec_(std::move(spec)), ids_(std::move(ids)) {}
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// Writes the rows to `out`, which may be typed or untyped.
  Result<void> produce(const Ask& ask, const BlockView& out, const Context& context) const;

  /// Writes the ids of the rows without computing them.
  virtual void identify(const Ask& ask, std::uint64_t* ids, const Context& context) const = 0;

  /// Adds the files to read for the rows, in their order, if they are known without computing
  /// anything.
  virtual void collect_reads(const Ask& /*ask*/, const Context&, std::vector<PlannedRead>&) const {}

  /// Spec of the rows; unknown if it is only known after the first sample.
  [[nodiscard]] const ElementSpec& spec() const { return spec_; }
  [[nodiscard]] const IdSpace& ids() const { return ids_; }

 protected:
  /// Like `produce`. `out` is typed if the spec is known, otherwise it may be either.
  virtual Result<void> run(const Ask& ask, const BlockView& out, const Context& context) const = 0;

 private:
  ElementSpec spec_;
  IdSpace ids_;
};
using StagePtr = std::unique_ptr<const Stage>;

/// Adds the sample and its file to a failure.
Failure at_sample(Failure failure, const IdSpace& ids, const BlockView& block);

}  // namespace penstock
