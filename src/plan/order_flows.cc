// Flows that put rows in another order, or join several.
// tested in src/plan/flows_test.cc
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "order/permutation.h"
#include "plan/flows.h"
#include "sample/rows.h"

namespace penstock {
namespace {

class WindowFlow final : public Flow {
 public:
  WindowFlow(FlowPtr input, WindowOrder order)
      : Flow(input->spec(), input->ids()), input_(std::move(input)), order_(order) {}
  [[nodiscard]] CursorPtr open(Turn turn) const override;

 private:
  friend class WindowCursor;
  const FlowPtr input_;
  const WindowOrder order_;
};

/// Pulls a window, then hands it out in its order. It is anchored where the window began.
class WindowCursor final : public Cursor {
 public:
  WindowCursor(const WindowFlow& flow, Turn turn)
      : flow_(flow), turn_(turn), input_(flow.input_->open(turn)), buffer_(flow.spec()) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    std::size_t made = 0;
    while (made < out.rows) {
      if (at_ == picks_.size()) {
        auto more = fill(pulling);
        if (!more) return std::move(more.failure());
        if (!*more) break;
      }
      const std::size_t rows = std::min(out.rows - made, picks_.size() - at_);
      const Scratch::Frame frame(pulling.scratch);
      pick_rows(buffer_.rows(0, picks_.size()), std::span(picks_).subspan(at_, rows),
                cut_rows(out, made, rows, pulling.scratch));
      at_ += rows;
      made += rows;
    }
    return made;
  }

  void save(Anchor& anchor) override {
    const bool inside = at_ < picks_.size();
    anchor.numbers.push_back(inside ? window_ - 1 : window_);
    anchor.numbers.push_back(inside ? at_ : 0);
    if (inside) {
      write_anchor(began_, anchor);
    } else {
      Anchor now;
      input_->save(now);
      write_anchor(now, anchor);
    }
  }

  Result<void> restore(AnchorReader& anchor, Pulling& pulling) override {
    window_ = anchor.number();
    const std::uint64_t passed = anchor.number();
    const Anchor began = anchor.anchor();
    AnchorReader reader(began);
    if (auto done = input_->restore(reader, pulling); !done) return done;
    if (passed == 0) return {};
    auto more = fill(pulling);
    if (!more) return std::move(more.failure());
    at_ = std::min<std::size_t>(passed, picks_.size());
    return {};
  }

 private:
  /// The next window; false at the end.
  Result<bool> fill(Pulling& pulling) {
    constexpr std::uint64_t kAtOnce = 4096;
    began_ = {};
    input_->save(began_);
    std::uint64_t rows = 0;
    while (rows < flow_.order_.size) {
      const std::size_t wanted = std::min(flow_.order_.size - rows, kAtOnce);
      buffer_.reserve(rows + wanted);
      auto got = input_->pull(buffer_.rows(rows, wanted), pulling);
      if (!got) return std::move(got.failure());
      rows += *got;
      if (*got < wanted) break;
    }
    picks_.resize(rows);
    at_ = 0;
    if (rows == 0) return false;
    for (std::uint64_t i = 0; i < rows; ++i) picks_[i] = i;
    const Turn key = flow_.order_.reshuffle ? turn_ : Turn{};
    Permutation(rows, {window_seed(flow_.order_.seed, window_), key.pass, key.round}).apply(picks_);
    ++window_;
    return true;
  }

  const WindowFlow& flow_;
  const Turn turn_;
  CursorPtr input_;
  RowBuffer buffer_;
  Anchor began_;                      // where the input was before the window in hand
  std::uint64_t window_ = 0;          // windows begun
  std::vector<std::uint64_t> picks_;  // rows of the buffer in their order
  std::size_t at_ = 0;                // handed out
};

CursorPtr WindowFlow::open(Turn turn) const {
  return std::make_unique<WindowCursor>(*this, turn);
}

class RepeatFlow final : public Flow {
 public:
  RepeatFlow(FlowPtr input, std::uint64_t rounds)
      : Flow(input->spec(), input->ids()), input_(std::move(input)), rounds_(rounds) {}
  [[nodiscard]] CursorPtr open(Turn turn) const override;

 private:
  friend class RepeatCursor;
  const FlowPtr input_;
  const std::uint64_t rounds_;
};

class RepeatCursor final : public Cursor {
 public:
  RepeatCursor(const RepeatFlow& flow, Turn turn) : flow_(flow), turn_(turn) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    std::size_t made = 0;
    while (made < out.rows && round_ < flow_.rounds_) {
      if (!input_) open_round();
      const Scratch::Frame frame(pulling.scratch);
      const std::size_t wanted = out.rows - made;
      auto got = input_->pull(cut_rows(out, made, wanted, pulling.scratch), pulling);
      if (!got) return got;
      made += *got;
      rows_ += *got;
      if (*got == wanted) break;
      input_.reset();
      ++round_;
      // A round without an element ends a repeat: 10^12 of them would be as long as for ever.
      if (rows_ == 0) round_ = flow_.rounds_;
      rows_ = 0;
    }
    return made;
  }

  void save(Anchor& anchor) override {
    anchor.numbers.push_back(round_);
    anchor.numbers.push_back(rows_);
    anchor.numbers.push_back(input_ ? 1 : 0);
    if (input_) input_->save(anchor);
  }
  Result<void> restore(AnchorReader& anchor, Pulling& pulling) override {
    round_ = anchor.number();
    rows_ = anchor.number();
    if (anchor.number() == 0) return {};
    open_round();
    return input_->restore(anchor, pulling);
  }

 private:
  void open_round() {
    input_ = flow_.input_->open({turn_.pass, nested_round(turn_.round, flow_.rounds_, round_)});
  }

  const RepeatFlow& flow_;
  const Turn turn_;
  CursorPtr input_;
  std::uint64_t round_ = 0;
  std::uint64_t rows_ = 0;  // of this round
};

CursorPtr RepeatFlow::open(Turn turn) const {
  return std::make_unique<RepeatCursor>(*this, turn);
}

IdSpace joined(const std::vector<FlowPtr>& flows) {
  IdSpace ids;
  for (const FlowPtr& flow : flows)
    ids.parts.insert(ids.parts.end(), flow->ids().parts.begin(), flow->ids().parts.end());
  return ids;
}

class ConcatenateFlow final : public Flow {
 public:
  ConcatenateFlow(std::vector<FlowPtr> parts, const ElementSpec& spec)
      : Flow(spec, joined(parts)), parts_(std::move(parts)) {}
  [[nodiscard]] CursorPtr open(Turn turn) const override;

 private:
  friend class ConcatenateCursor;
  std::vector<FlowPtr> parts_;
};

class ConcatenateCursor final : public Cursor {
 public:
  ConcatenateCursor(const ConcatenateFlow& flow, Turn turn) : flow_(flow), turn_(turn) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    std::size_t made = 0;
    while (made < out.rows && part_ < flow_.parts_.size()) {
      if (!input_) input_ = flow_.parts_[part_]->open(turn_);
      const Scratch::Frame frame(pulling.scratch);
      const std::size_t wanted = out.rows - made;
      auto got = pull_as(*input_, flow_.parts_[part_]->spec(),
                         cut_rows(out, made, wanted, pulling.scratch), pulling);
      if (!got) return got;
      made += *got;
      if (*got == wanted) break;
      input_.reset();
      ++part_;
    }
    return made;
  }
  void save(Anchor& anchor) override {
    anchor.numbers.push_back(part_);
    anchor.numbers.push_back(input_ ? 1 : 0);
    if (input_) input_->save(anchor);
  }
  Result<void> restore(AnchorReader& anchor, Pulling& pulling) override {
    part_ = std::min<std::uint64_t>(anchor.number(), flow_.parts_.size());
    if (anchor.number() == 0 || part_ == flow_.parts_.size()) return {};
    input_ = flow_.parts_[part_]->open(turn_);
    return input_->restore(anchor, pulling);
  }

 private:
  const ConcatenateFlow& flow_;
  const Turn turn_;
  CursorPtr input_;
  std::size_t part_ = 0;
};

CursorPtr ConcatenateFlow::open(Turn turn) const {
  return std::make_unique<ConcatenateCursor>(*this, turn);
}

class ZipFlow final : public Flow {
 public:
  ZipFlow(std::vector<FlowPtr> parts, const ElementSpec& spec, bool strict)
      : Flow(spec, parts.front()->ids()), parts_(std::move(parts)), strict_(strict) {}
  [[nodiscard]] CursorPtr open(Turn turn) const override;

 private:
  friend class ZipCursor;
  const std::vector<FlowPtr> parts_;
  const bool strict_;
};

class ZipCursor final : public Cursor {
 public:
  ZipCursor(const ZipFlow& flow, Turn turn) : flow_(flow) {
    for (const FlowPtr& part : flow.parts_) {
      inputs_.push_back(part->open(turn));
      buffers_.push_back(std::make_unique<RowBuffer>(part->spec()));
    }
  }

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    // Row by row: nothing behind the end of the shortest part may be pulled, or fail.
    std::size_t made = 0;
    while (made < out.rows) {
      const Scratch::Frame frame(pulling.scratch);
      auto got = pull_some(cut_rows(out, made, 1, pulling.scratch), pulling);
      if (!got) return got;
      if (*got == 0) break;
      ++made;
    }
    return made;
  }
  void save(Anchor& anchor) override {
    anchor.numbers.push_back(ended_ ? 1 : 0);
    anchor.numbers.push_back(rows_);
    for (const CursorPtr& input : inputs_) input->save(anchor);
  }
  Result<void> restore(AnchorReader& anchor, Pulling& pulling) override {
    ended_ = anchor.number() != 0;
    rows_ = anchor.number();
    for (const CursorPtr& input : inputs_)
      if (auto done = input->restore(anchor, pulling); !done) return done;
    return {};
  }

 private:
  Result<std::size_t> pull_some(const BlockView& out, Pulling& pulling) {
    std::size_t rows = ended_ ? 0 : out.rows;
    for (std::size_t i = 0; i < inputs_.size() && rows > 0; ++i) {
      buffers_[i]->reserve(rows);
      auto got = inputs_[i]->pull(buffers_[i]->rows(0, rows), pulling);
      if (!got) return got;
      if (flow_.strict_ && i > 0 && *got < rows) return unequal(i, *got);
      rows = *got;
    }
    if (flow_.strict_ && rows < out.rows && !ended_)
      if (auto done = all_ended(rows, pulling); !done) return std::move(done.failure());
    ended_ = rows < out.rows;
    write(rows, out);
    rows_ += rows;
    return rows;
  }

  [[nodiscard]] Failure unequal(std::size_t part, std::size_t rows) const {
    return {fmt::format("zip: part {} ended after {} elements, an earlier one has more", part,
                        rows_ + rows),
            {},
            "drop strict, or make the parts equally long"};
  }
  /// The first part ended; the others must have, too.
  Result<void> all_ended(std::size_t rows, Pulling& pulling) {
    for (std::size_t i = 1; i < inputs_.size(); ++i) {
      buffers_[i]->reserve(rows + 1);
      auto got = inputs_[i]->pull(buffers_[i]->rows(rows, 1), pulling);
      if (!got) return std::move(got.failure());
      if (*got > 0)
        return Failure{
            fmt::format("zip: part 0 ended after {} elements, part {} has more", rows_ + rows, i),
            {},
            "drop strict, or make the parts equally long"};
    }
    return {};
  }

  void write(std::size_t rows, const BlockView& out) {
    std::vector<BlockView> parts;
    parts.reserve(buffers_.size());
    for (const auto& buffer : buffers_) parts.push_back(buffer->rows(0, rows));
    for (std::size_t row = 0; row < rows; ++row) {
      out.identity.sample_id[row] = parts[0].identity.sample_id[row];
      out.identity.occurrence[row] = parts[0].identity.occurrence[row];
      if (out.samples == nullptr) continue;
      std::vector<Sample> tuple;
      tuple.reserve(parts.size());
      for (const BlockView& part : parts) tuple.push_back(read_row(part, row));
      (void)write_row(out, row, Sample::tuple(std::move(tuple)));
    }
    if (out.samples != nullptr) return;
    std::size_t column = 0;
    for (BlockView& part : parts) {
      BlockView target = out;
      target.columns = out.columns.subspan(column, part.columns.size());
      target.identity = part.identity;  // only the values are wanted
      copy_rows(part, 0, target, 0, rows);
      column += part.columns.size();
    }
  }

  const ZipFlow& flow_;
  std::vector<CursorPtr> inputs_;
  std::vector<std::unique_ptr<RowBuffer>> buffers_;
  std::uint64_t rows_ = 0;
  bool ended_ = false;
};

CursorPtr ZipFlow::open(Turn turn) const {
  return std::make_unique<ZipCursor>(*this, turn);
}

}  // namespace

FlowPtr window_flow(FlowPtr input, WindowOrder order) {
  return std::make_unique<WindowFlow>(std::move(input), order);
}
FlowPtr repeat_flow(FlowPtr input, std::uint64_t rounds) {
  return std::make_unique<RepeatFlow>(std::move(input), rounds);
}
FlowPtr concatenate_flow(std::vector<FlowPtr> parts, const ElementSpec& spec) {
  return std::make_unique<ConcatenateFlow>(std::move(parts), spec);
}
FlowPtr zip_flow(std::vector<FlowPtr> parts, const ElementSpec& spec, bool strict) {
  return std::make_unique<ZipFlow>(std::move(parts), spec, strict);
}

}  // namespace penstock
