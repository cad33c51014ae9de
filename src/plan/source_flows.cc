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

 private:
  friend class GeneratorCursor;
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
            // NOLINTNEXTLINE(bugprone-empty-catch): `wrong` has it
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
    failure.make_permanent();  // a generator that threw cannot be asked again
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

 private:
  friend class IndexedCursor;
  const StagePtr stage_;
  const std::uint64_t size_;
};

/// Bytes of a row, or 0 where that is not known.
std::uint64_t dense_row_bytes(const ElementSpec& spec) {
  std::uint64_t bytes = 0;
  for (const FieldSpec& field : spec.fields) {
    if (!is_dense(field)) return 0;
    bytes += row_bytes(field);
  }
  return bytes;
}

/// Rows are made some at a time ahead of what is asked for, where that pays;
/// nobody can tell, since any row may be asked for at any time.
class IndexedCursor final : public Cursor {
 public:
  IndexedCursor(const IndexedFlow& flow, Turn turn)
      : flow_(flow), turn_(turn), row_bytes_(dense_row_bytes(flow.spec())) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    std::size_t made = 0;
    while (made < out.rows && position_ < flow_.size_) {
      if (position_ >= ahead_first_ && position_ < ahead_end_) {
        const std::size_t rows = std::min(out.rows - made, ahead_end_ - position_);
        copy_rows(ahead_rows_, position_ - ahead_first_, out, made, rows);
        made += rows;
        position_ += rows;
        continue;
      }
      const std::uint64_t left = flow_.size_ - position_;
      const std::size_t wanted = std::min<std::uint64_t>(out.rows - made, left);
      const std::uint64_t ahead = std::min(rows_at_once(pulling), left);
      if (wanted < ahead && position_ >= plain_until_ && look_ahead(ahead, pulling)) continue;
      const Scratch::Frame frame(pulling.scratch);
      auto kept = make(cut_rows(out, made, wanted, pulling.scratch), pulling);
      if (!kept) return kept;
      position_ += wanted;
      made += *kept;
    }
    return made;
  }

  LentRows lend(std::size_t rows) override {
    if (position_ < ahead_first_ || position_ + rows > ahead_end_) return {};
    const std::size_t first = position_ - ahead_first_;
    position_ += rows;
    return {&ahead_rows_, first};
  }

  void save(Anchor& anchor) override { anchor.numbers.push_back(position_); }
  Result<void> restore(AnchorReader& anchor, Pulling&) override {
    position_ = anchor.number();
    return {};
  }

 private:
  /// How many rows to compute at a time. Costly ones so that every thread has something to do, but
  /// for no longer than some 20 ms or one row takes: nobody may want the rest. Cheap ones so that
  /// asking costs little against computing them.
  [[nodiscard]] std::uint64_t rows_at_once(const Pulling& pulling) const {
    constexpr std::int64_t kCostly = 20'000;
    constexpr std::int64_t kCheap = 1'000;
    constexpr std::uint64_t kSharedRows = 64;
    constexpr std::uint64_t kCheapRows = 256;
    constexpr std::uint64_t kCheapBytes = std::uint64_t{64} * 1024;
    constexpr std::int64_t kShareFor = 20'000'000;
    if (row_cost_ >= kCostly) {
      if (pulling.gang == nullptr) return 0;
      const std::uint64_t threads = std::min<std::uint64_t>(pulling.gang->threads(), kSharedRows);
      return std::clamp<std::uint64_t>(kShareFor / row_cost_, threads, kSharedRows);
    }
    if (row_cost_ < 0 || row_cost_ > kCheap || row_bytes_ == 0) return 0;
    return std::min(kCheapRows, kCheapBytes / row_bytes_);
  }

  /// False where one of them cannot be made: that is told when its turn comes.
  bool look_ahead(std::size_t rows, Pulling& pulling) {
    if (!ahead_) ahead_ = std::make_unique<RowBuffer>(flow_.spec());
    ahead_->reserve(rows);
    RowFailures untold;
    Pulling quiet = pulling;
    if (pulling.failures != nullptr) quiet.failures = &untold;
    ahead_rows_ = ahead_->rows(0, rows);
    const auto kept = make(ahead_rows_, quiet);
    if (!kept || *kept < rows) {
      plain_until_ = position_ + rows;
      return false;
    }
    ahead_first_ = position_;
    ahead_end_ = position_ + rows;
    return true;
  }

  /// The rows from the position on; returns how many could be made.
  Result<std::size_t> make(const BlockView& part, Pulling& pulling) {
    const Nanoseconds began = pulling.clock->now();
    auto kept = run_stage(*flow_.stage_, {turn_, position_, nullptr}, part, pulling);
    row_cost_ = (pulling.clock->now() - began).count() / static_cast<std::int64_t>(part.rows);
    return kept;
  }

  const IndexedFlow& flow_;
  const Turn turn_;
  std::uint64_t position_ = 0;
  std::int64_t row_cost_ = -1;     // nanoseconds of all threads together, as measured last
  const std::uint64_t row_bytes_;  // 0 where they differ
  std::unique_ptr<RowBuffer> ahead_;
  BlockView ahead_rows_;           // of the buffer
  std::uint64_t ahead_first_ = 0;  // positions in the buffer
  std::uint64_t ahead_end_ = 0;
  std::uint64_t plain_until_ = 0;
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
