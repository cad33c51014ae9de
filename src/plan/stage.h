#pragma once
// The compiled form of sample-level nodes: a tree of stages. A stage is asked for the rows at some
// positions of its order and writes them into a block; the last stage writes into the batch.

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

/// Where the sample ids of each source of a subtree begin, ascending.
struct IdSpace {
  struct Part {
    std::uint64_t first_id;
    std::uint32_t source;
    std::shared_ptr<const Source> origin = {};  // of data that is found by number
  };
  std::vector<Part> parts;
  [[nodiscard]] SampleKey key(std::uint64_t sample_id) const;
  /// The file the sample is in, or nothing.
  [[nodiscard]] std::string file_of(std::uint64_t sample_id) const;

 private:
  [[nodiscard]] const Part& part(std::uint64_t sample_id) const;
};

/// Which rows are wanted: positions in the stage's order, in one turn.
struct Ask {
  Turn turn;
  std::span<const std::uint64_t> positions;
  const BlockView* pulled = nullptr;  // of a stream: what the positions count
};

/// Const and stateless; any thread may ask anything at any time.
class Stage {
 public:
  Stage(ElementSpec spec, IdSpace ids) : spec_(std::move(spec)), ids_(std::move(ids)) {}
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// Writes the rows to `out`, whether that is typed or still holds whole samples.
  Result<void> produce(const Ask& ask, const BlockView& out, const Context& context) const;

  /// The ids of the rows, without computing them.
  virtual void identify(const Ask& ask, std::uint64_t* ids, const Context& context) const = 0;

  /// Adds what must be read for the rows, in their order, as far as that shows without computing
  /// anything.
  virtual void collect_reads(const Ask& /*ask*/, const Context&, std::vector<PlannedRead>&) const {}

  /// Spec of the rows; unknown where only running shows it.
  [[nodiscard]] const ElementSpec& spec() const { return spec_; }
  [[nodiscard]] const IdSpace& ids() const { return ids_; }

 protected:
  /// As `produce`. With a known spec `out` is typed; with an unknown one it may be either.
  virtual Result<void> run(const Ask& ask, const BlockView& out, const Context& context) const = 0;

 private:
  ElementSpec spec_;
  IdSpace ids_;
};
using StagePtr = std::unique_ptr<const Stage>;

/// Adds to a failure which sample it was, and in which file.
Failure at_sample(Failure failure, const IdSpace& ids, const BlockView& block);

}  // namespace penstock
