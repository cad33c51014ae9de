#pragma once
// Compiled streams. A flow is the const description of a sequence of rows. A cursor traverses it
// once, in one thread at a time, and can save its position. Stages (stage.h) process the pulled
// rows in parallel.

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

/// The saved position of a cursor: the numbers that its parts wrote, in their order.
struct Anchor {
  std::vector<std::uint64_t> numbers;
  std::vector<std::string> texts;
  bool operator==(const Anchor&) const = default;
};

/// Reads an anchor in the order in which it was written; throws StateError if it is too short.
class AnchorReader {
 public:
  explicit AnchorReader(const Anchor& anchor) : anchor_(anchor) {}
  std::uint64_t number();
  std::string text();
  /// Reads an anchor that `write_anchor` wrote.
  Anchor anchor();

 private:
  const Anchor& anchor_;
  std::size_t number_ = 0;
  std::size_t text_ = 0;
};
/// Writes `part` as a nested anchor.
void write_anchor(const Anchor& part, Anchor& to);

/// Runs `body(first, rows)` for all of `rows` rows, possibly on several threads.
class Gang {
 public:
  using Body = std::function<void(std::size_t first, std::size_t rows, const Context& context)>;
  virtual ~Gang() = default;
  virtual void run(std::size_t rows, const Context& context, const Body& body) = 0;
  /// How many threads may run `body` at the same time.
  [[nodiscard]] virtual unsigned threads() const = 0;
};

/// What a pull needs besides the cursor.
struct Pulling {
  Context context;
  RowFailures* failures = nullptr;  // collects failed rows; null: a failure ends the pull
  Gang* gang = nullptr;             // null: run on the calling thread
  Clock* clock = &Clock::real();    // measures the cost of rows
};

/// Rows of a block from `first` on. The block still belongs to the cursor.
struct LentRows {
  const BlockView* block = nullptr;
  std::size_t first = 0;
};

/// Must not be used after a failure.
class Cursor {
 public:
  virtual ~Cursor() = default;
  /// Writes the next rows to `out` and returns how many: fewer than requested only at the end. Does
  /// not pull more than requested.
  virtual Result<std::size_t> pull(const BlockView& out, Pulling& pulling) = 0;
  /// If the next `rows` rows are all in memory, skips them and returns where they are; valid until
  /// the next call. Otherwise returns no block and does nothing.
  virtual LentRows lend([[maybe_unused]] std::size_t rows) { return {}; }
  /// Saves the position; called between two pulls.
  virtual void save(Anchor& anchor) = 0;
  /// Moves to a saved position. Only for a cursor that has not pulled yet.
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

/// Pulls and discards rows; returns how many there were.
Result<std::uint64_t> skip_rows(Cursor& cursor, const ElementSpec& spec, std::uint64_t rows,
                                Pulling& pulling);
/// Pulls rows of `spec` into `out`, which may be untyped.
Result<std::size_t> pull_as(Cursor& cursor, const ElementSpec& spec, const BlockView& out,
                            Pulling& pulling);

/// Copies rows picks[i] of `from` to rows i of `to`, with their identity. Both have the same spec.
void pick_rows(const BlockView& from, std::span<const std::uint64_t> picks, const BlockView& to);

/// A pulled step: rows for one batch node, not yet processed.
struct PulledStep {
  std::uint32_t leaf = 0;
  std::uint64_t pass = 0;
  std::size_t rows = 0;
  std::uint64_t padded_to = 0;  // slots, including empty ones; 0: not padded
  std::unique_ptr<RowBuffer> buffer;
};
inline Place place_of(const PulledStep& step) {
  return {step.leaf, {step.pass, 0}, 0, step.rows, 0, step.padded_to};
}

class StepCursor {
 public:
  virtual ~StepCursor() = default;
  /// Returns false at the end and leaves the step unchanged.
  virtual Result<bool> pull(PulledStep& step, Pulling& pulling) = 0;
  virtual void save(Anchor& anchor) = 0;
  virtual Result<void> restore(AnchorReader& anchor, Pulling& pulling) = 0;
};
using StepCursorPtr = std::unique_ptr<StepCursor>;

/// A cursor over one other. Its anchor has its own numbers first, then those of its input.
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
  /// The cursor's own numbers in an anchor, without those of its input.
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
