// Flows that begin a stream: generators, and indexed data in order.
// tested in src/plan/flows_test.cc
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/guarded.h"
#include "plan/flows.h"
#include "plan/run_stage.h"
#include "sample/rows.h"
#include "trace/activity.h"

namespace penstock {
namespace {

class GeneratorFlow final : public Flow {
 public:
  GeneratorFlow(GeneratorFn fn, const ElementSpec& spec, GeneratorPlace place)
      : Flow(spec, IdSpace{{{place.source.first_id, place.source.ordinal}}}),
        fn_(std::move(fn)),
        title_(std::move(place.title)),
        first_id_(place.source.first_id) {}
  [[nodiscard]] CursorPtr open(Turn turn) const override;

  const GeneratorFn fn_;
  const std::string title_;
  const std::uint64_t first_id_;
};

class GeneratorCursor final : public Cursor {
 public:
  GeneratorCursor(const GeneratorFlow& flow, Turn turn) : flow_(flow), turn_(turn) {}

  Result<std::size_t> pull(const BlockView& out, Pulling&) override {
    if (ended_) return std::size_t{0};
    for (std::size_t row = 0; row < out.rows; ++row)
      out.identity.sample_id[row] = flow_.first_id_ + pulled_ + row;
    std::fill_n(out.identity.occurrence, out.rows, turn_.round);
    trace::doing(flow_.title_, flow_.first_id_ + pulled_, out.rows);
    GeneratorRun::Pull pull;
    std::vector<std::byte*> columns;
    for (const Column& column : out.columns) columns.push_back(column.data);
    pull.columns = columns;
    pull.rows = out.rows;
    bool wanted = true;
    pull.wanted = [&](std::size_t row) {
      return wanted = trace::at_sample(flow_.first_id_ + pulled_ + row);
    };
    std::optional<std::string> wrong;
    pull.put = [&](std::size_t row, const Sample& sample) {
      if (!wrong) wrong = write_row(out, row, sample);
      if (wrong) throw wrong;  // NOLINT: ours, caught below
    };
    auto done = guarded(
        [&] {
          try {
            if (!run_) run_ = flow_.fn_.open({turn_.pass, turn_.round});
            run_->pull(pull);
          } catch (const std::optional<std::string>&) {
          }
        },
        [&] { return pull.made; });
    if (!done || wrong || !wanted) return failure(std::move(done), wrong, wanted, pull.made, out);
    pulled_ += pull.made;
    ended_ = pull.ended;
    return pull.made;
  }

  void save(Anchor& anchor) override {
    anchor.numbers.push_back(pulled_);
    anchor.numbers.push_back(ended_ ? 1 : 0);
    if (flow_.fn_.has_cursor) anchor.texts.push_back(run_ && !ended_ ? run_->save() : "");
  }

  Result<void> restore(AnchorReader& anchor, Pulling& pulling) override {
    const std::uint64_t pulled = anchor.number();
    const bool ended = anchor.number() != 0;
    const std::string text = flow_.fn_.has_cursor ? anchor.text() : "";
    if (pulled == 0 && !ended) return {};
    if (ended || flow_.fn_.has_cursor) {
      auto done = guarded(
          [&] {
            if (ended) return;
            run_ = flow_.fn_.open({turn_.pass, turn_.round});
            run_->restore(text);
          },
          [] { return std::size_t{0}; });
      if (!done) {
        done.failure().where.op = flow_.title_;
        return done;
      }
      pulled_ = pulled;
      ended_ = ended;
      return {};
    }
    auto skipped = skip_rows(*this, flow_.spec(), pulled, pulling);
    if (!skipped) return std::move(skipped.failure());
    if (*skipped == pulled) return {};
    Failure failure{fmt::format("the generator yielded {} elements, the state was saved after {}",
                                *skipped, pulled)};
    failure.where.op = flow_.title_;
    failure.remedy = "a generator must yield the same elements each time it is started";
    return failure;
  }

 private:
  Failure failure(Result<void> done, const std::optional<std::string>& wrong, bool wanted,
                  std::size_t row, const BlockView& out) const {
    if (!wanted) return cancelled(row);
    Failure failure =
        wrong ? Failure{*wrong, {}, "every element must have the declared fields", nullptr, row}
              : std::move(done.failure());
    failure.where.op = flow_.title_;
    failure.may_pass = false;  // a generator that threw cannot be asked again
    return at_sample(std::move(failure), flow_.ids(), out);
  }

  const GeneratorFlow& flow_;
  const Turn turn_;
  std::unique_ptr<GeneratorRun> run_;
  std::uint64_t pulled_ = 0;
  bool ended_ = false;
};

CursorPtr GeneratorFlow::open(Turn turn) const {
  return std::make_unique<GeneratorCursor>(*this, turn);
}

class IndexedFlow final : public Flow {
 public:
  IndexedFlow(StagePtr stage, std::uint64_t size)
      : Flow(stage->spec(), stage->ids()), stage_(std::move(stage)), size_(size) {}
  [[nodiscard]] CursorPtr open(Turn turn) const override;

  const StagePtr stage_;
  const std::uint64_t size_;
};

/// Costly rows are made some at a time ahead of what is asked for, so that there is work for
/// several threads; nobody can tell, since any row may be asked for at any time.
class IndexedCursor final : public Cursor {
 public:
  IndexedCursor(const IndexedFlow& flow, Turn turn) : flow_(flow), turn_(turn) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    std::size_t made = 0;
    while (made < out.rows) {
      if (ready_at_ < ready_) {
        const std::size_t rows = std::min(out.rows - made, ready_ - ready_at_);
        copy_rows(buffer_->rows(0, ready_), ready_at_, out, made, rows);
        made += rows;
        ready_at_ += rows;
        continue;
      }
      const std::uint64_t left = flow_.size_ == kEndless ? kEndless : flow_.size_ - position_;
      if (left == 0) break;
      if (ahead_ > out.rows - made && pulling.gang != nullptr) {
        auto filled = fill(std::min<std::uint64_t>(ahead_, left), pulling);
        if (!filled) return std::move(filled.failure());
        continue;
      }
      const Scratch::Frame frame(pulling.scratch);
      const BlockView part =
          cut_rows(out, made, std::min<std::uint64_t>(out.rows - made, left), pulling.scratch);
      auto kept = make(part, pulling);
      if (!kept) return kept;
      made += *kept;
    }
    return made;
  }

  void save(Anchor& anchor) override {
    // Rows that failed are gone from the buffer, so their number is kept beside it.
    anchor.numbers.push_back(ready_at_ < ready_ ? buffered_from_ : position_);
    anchor.numbers.push_back(ready_at_ < ready_ ? ready_at_ : 0);
  }
  Result<void> restore(AnchorReader& anchor, Pulling& pulling) override {
    position_ = anchor.number();
    const std::uint64_t passed = anchor.number();
    auto skipped = skip_rows(*this, flow_.spec(), passed, pulling);
    if (!skipped) return std::move(skipped.failure());
    return {};
  }

 private:
  Result<void> fill(std::size_t rows, Pulling& pulling) {
    if (!buffer_) buffer_ = std::make_unique<RowBuffer>(flow_.spec());
    buffer_->reserve(rows);
    buffered_from_ = position_;
    auto kept = make(buffer_->rows(0, rows), pulling);
    if (!kept) return std::move(kept.failure());
    ready_ = *kept;
    ready_at_ = 0;
    return {};
  }

  /// The next part.rows positions; returns how many rows came out.
  Result<std::size_t> make(const BlockView& part, Pulling& pulling) {
    const Nanoseconds began = Clock::real().now();
    auto kept = run_stage(*flow_.stage_, {turn_, position_, nullptr}, part, pulling);
    position_ += part.rows;
    // From 20 us a row on it pays to give several threads something to do.
    constexpr std::int64_t kCostly = 20'000;
    constexpr std::size_t kAhead = 64;
    const auto took = (Clock::real().now() - began).count();
    ahead_ = took / static_cast<std::int64_t>(part.rows) >= kCostly ? kAhead : 0;
    return kept;
  }

  const IndexedFlow& flow_;
  const Turn turn_;
  std::uint64_t position_ = 0;
  std::size_t ahead_ = 0;
  std::unique_ptr<RowBuffer> buffer_;
  std::uint64_t buffered_from_ = 0;
  std::size_t ready_ = 0;
  std::size_t ready_at_ = 0;
};

CursorPtr IndexedFlow::open(Turn turn) const {
  return std::make_unique<IndexedCursor>(*this, turn);
}

}  // namespace

FlowPtr generator_flow(GeneratorFn fn, const ElementSpec& spec, GeneratorPlace place) {
  return std::make_unique<GeneratorFlow>(std::move(fn), spec, std::move(place));
}
FlowPtr indexed_flow(StagePtr stage, std::uint64_t size) {
  return std::make_unique<IndexedFlow>(std::move(stage), size);
}

}  // namespace penstock
