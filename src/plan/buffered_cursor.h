#pragma once
// A cursor that pulls a block of rows from its input and returns them in parts. Its state is the
// state of the input before the block, and how many rows of the block were returned.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "plan/cursor.h"
#include "sample/rows.h"

namespace penstock {

template <typename Input>  // Cursor or StepCursor
class BufferedCursor : public Cursor {
 public:
  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) final {
    std::size_t done = 0;
    while (done < out.rows) {
      if (at_ == rows_) {
        auto more = refill(pulling);
        if (!more) return std::move(more.failure());
        if (!*more) break;
        continue;
      }
      const std::size_t rows = std::min(out.rows - done, rows_ - at_);
      const Scratch::Frame frame(pulling.context.scratch);
      auto handed = hand_out(at_, cut_rows(out, done, rows, pulling.context.scratch));
      if (!handed) {
        handed.failure().row += done;
        return std::move(handed.failure());
      }
      done += rows;
      at_ += rows;
      finish_block();
    }
    return done;
  }
  void save(Anchor& anchor) final {
    const bool inside = at_ < rows_;
    const std::span<std::uint64_t> own = place();
    anchor.numbers.insert(anchor.numbers.end(), own.begin(), own.end());
    anchor.numbers.push_back(inside ? at_ : 0);
    Anchor now;
    if (!inside) input_->save(now);
    write_anchor(inside ? before_ : now, anchor);
  }
  Result<void> restore(AnchorReader& anchor, Pulling& pulling) final {
    for (std::uint64_t& number : place()) number = anchor.number();
    const std::uint64_t passed = anchor.number();
    const Anchor before = anchor.anchor();
    AnchorReader reader(before);
    if (auto done = input_->restore(reader, pulling); !done) return done;
    if (passed == 0) return {};
    auto more = refill(pulling);
    if (!more) return std::move(more.failure());
    at_ = std::min<std::size_t>(passed, rows_);
    finish_block();  // rows of the block that succeeded before the save may fail now
    return {};
  }

 protected:
  explicit BufferedCursor(std::unique_ptr<Input> input) : input_(std::move(input)) {}

  /// Pulls the next block; returns its rows, or nothing at the end.
  virtual Result<std::optional<std::size_t>> fill(Pulling& pulling) = 0;
  /// Writes rows of the block, from `first` on, to all of `out`.
  virtual Result<void> hand_out(std::size_t first, const BlockView& out) = 0;
  /// Called when all rows of the block were returned.
  virtual void block_done() {}
  /// The cursor's own numbers in an anchor, without those of the block and the input.
  virtual std::span<std::uint64_t> place() { return {}; }

  const std::unique_ptr<Input> input_;

 private:
  void finish_block() {
    if (rows_ == 0 || at_ < rows_) return;
    at_ = rows_ = 0;
    block_done();
  }
  /// False at the end.
  Result<bool> refill(Pulling& pulling) {
    before_ = {};
    input_->save(before_);
    at_ = rows_ = 0;
    auto rows = fill(pulling);
    if (!rows) return std::move(rows.failure());
    rows_ = rows->value_or(0);
    return rows->has_value();
  }

  Anchor before_;  // the state of the input before the block
  std::size_t rows_ = 0;
  std::size_t at_ = 0;
};

}  // namespace penstock
