#pragma once
// Streams, compiled. A flow is the const description of a sequence of rows; a cursor walks through
// it once, in one thread at a time, and can say where it is. What was pulled is worked on in
// parallel by stages (stage.h).

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "penstock/result.h"
#include "plan/failures.h"
#include "plan/stage.h"
#include "sample/row_buffer.h"

namespace penstock {

/// Where a cursor is: what its parts wrote, in their order.
struct Anchor {
  std::vector<std::uint64_t> numbers;
  std::vector<std::string> texts;
  bool operator==(const Anchor&) const = default;
};

/// Reads an anchor in the order in which it was written; throws StateError where it is too short.
class AnchorReader {
 public:
  explicit AnchorReader(const Anchor& anchor) : anchor_(anchor) {}
  std::uint64_t number();
  std::string text();
  /// An anchor that `write_anchor` wrote.
  Anchor anchor();

 private:
  const Anchor& anchor_;
  std::size_t number_ = 0;
  std::size_t text_ = 0;
};
/// Writes `part` so that it can be read as one piece.
void write_anchor(const Anchor& part, Anchor& to);

/// Runs `body(first, rows)` for all of `rows` rows, perhaps on several threads at once.
class Gang {
 public:
  using Body = std::function<void(std::size_t first, std::size_t rows, const Context& context)>;
  virtual ~Gang() = default;
  virtual void run(std::size_t rows, const Context& context, const Body& body) = 0;
  /// How many threads may work on it at once.
  [[nodiscard]] virtual unsigned threads() const = 0;
};

/// What a pull needs besides the cursor.
struct Pulling {
  Context context;
  RowFailures* failures = nullptr;  // collects rows that cannot be made; null: the first one ends
  Gang* gang = nullptr;             // null: everything in the calling thread
  Clock* clock = &Clock::real();    // what rows cost is measured by it
};

/// Rows of a block that stays with whoever made it, from `first` on.
struct LentRows {
  const BlockView* block = nullptr;
  std::size_t first = 0;
};

/// After a failure a cursor cannot be used any more.
class Cursor {
 public:
  virtual ~Cursor() = default;
  /// Writes the next rows to `out` and returns how many: fewer than asked for only at the end. What
  /// is not asked for is not pulled.
  virtual Result<std::size_t> pull(const BlockView& out, Pulling& pulling) = 0;
  /// Where all of the next `rows` rows are in memory already: passes by them and says where they
  /// are, until the next call. Otherwise no block, and nothing happens.
  virtual LentRows lend([[maybe_unused]] std::size_t rows) { return {}; }
  /// Where it is, between two pulls.
  virtual void save(Anchor& anchor) = 0;
  /// Goes where `save` was called; for a cursor that has not pulled yet.
  virtual Result<void> restore(AnchorReader& anchor, Pulling& pulling) = 0;
};
using CursorPtr = std::unique_ptr<Cursor>;

/// Const; any thread may open cursors.
class Flow {
 public:
  Flow(ElementSpec spec, IdSpace ids) : spec_(std::move(spec)), ids_(std::move(ids)) {}
  virtual ~Flow() = default;
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;
  [[nodiscard]] virtual CursorPtr open(Turn turn) const = 0;
  [[nodiscard]] const ElementSpec& spec() const { return spec_; }
  [[nodiscard]] const IdSpace& ids() const { return ids_; }

 private:
  ElementSpec spec_;
  IdSpace ids_;
};
using FlowPtr = std::unique_ptr<const Flow>;

/// Pulls and forgets; returns how many there were.
Result<std::uint64_t> skip_rows(Cursor& cursor, const ElementSpec& spec, std::uint64_t rows,
                                Pulling& pulling);
/// Pulls rows of `spec` into `out`, which may still hold whole samples.
Result<std::size_t> pull_as(Cursor& cursor, const ElementSpec& spec, const BlockView& out,
                            Pulling& pulling);

/// Copies rows picks[i] of `from` to rows i of `to`, with their identity. Both have the same spec.
void pick_rows(const BlockView& from, std::span<const std::uint64_t> picks, const BlockView& to);

/// A step that was pulled: rows for one batch node, not worked on yet.
struct PulledStep {
  std::uint32_t leaf = 0;
  std::uint64_t pass = 0;
  std::size_t rows = 0;
  std::uint64_t padded_to = 0;  // slots, empty ones included; 0: none are
  std::unique_ptr<RowBuffer> buffer;
};
inline Place place_of(const PulledStep& step) {
  return {step.leaf, {step.pass, 0}, 0, step.rows, 0, step.padded_to};
}

class StepCursor {
 public:
  virtual ~StepCursor() = default;
  /// False at the end; the step is then not touched.
  virtual Result<bool> pull(PulledStep& step, Pulling& pulling) = 0;
  virtual void save(Anchor& anchor) = 0;
  virtual Result<void> restore(AnchorReader& anchor, Pulling& pulling) = 0;
};
using StepCursorPtr = std::unique_ptr<StepCursor>;

/// A cursor over one other. An anchor has its own place first, then that of its input.
template <typename Kind, typename Input>
class CursorOver : public Kind {
 public:
  void save(Anchor& anchor) final {
    const std::span<std::uint64_t> own = place();
    anchor.numbers.insert(anchor.numbers.end(), own.begin(), own.end());
    input_->save(anchor);
  }
  Result<void> restore(AnchorReader& anchor, Pulling& pulling) final {
    for (std::uint64_t& number : place()) number = anchor.number();
    return input_->restore(anchor, pulling);
  }

 protected:
  explicit CursorOver(std::unique_ptr<Input> input) : input_(std::move(input)) {}
  /// The numbers that say where it is, apart from its input.
  virtual std::span<std::uint64_t> place() { return {}; }

  const std::unique_ptr<Input> input_;
};

class StepFlow {
 public:
  StepFlow() = default;
  virtual ~StepFlow() = default;
  StepFlow(const StepFlow&) = delete;
  StepFlow& operator=(const StepFlow&) = delete;
  [[nodiscard]] virtual StepCursorPtr open(Turn turn) const = 0;
};
using StepFlowPtr = std::unique_ptr<const StepFlow>;

}  // namespace penstock
