// The rows of indexed data as a stream.
// tested in src/plan/flows_test.cc
#include <algorithm>
#include <utility>

#include "penstock/clock.h"
#include "plan/flows.h"
#include "plan/run_stage.h"
#include "sample/rows.h"

namespace penstock {
namespace {

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

/// Bytes of a row, or 0 if unknown.
std::uint64_t dense_row_bytes(const ElementSpec& spec) {
  std::uint64_t bytes = 0;
  for (const FieldSpec& field : spec.fields) {
    if (!is_dense(field)) return 0;
    bytes += row_bytes(field);
  }
  return bytes;
}

/// Computes some rows in advance where that pays. The results are the same, since a row of indexed
/// data may be requested at any time.
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
      const Scratch::Frame frame(pulling.context.scratch);
      auto kept = make(cut_rows(out, made, wanted, pulling.context.scratch), pulling);
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
  /// How many rows to compute at a time. Costly rows: enough for every thread, but at most about 20
  /// ms of work or one row, since the rest may never be requested. Cheap rows: enough to make the
  /// cost of a call negligible.
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

  /// Returns false if a row fails; that failure is reported when the row is requested.
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

  /// Computes the rows from the position on; returns how many succeeded.
  Result<std::size_t> make(const BlockView& part, Pulling& pulling) {
    const Nanoseconds began = pulling.clock->now();
    auto kept = run_stage(*flow_.stage_, {turn_, position_, nullptr}, part, pulling);
    row_cost_ = (pulling.clock->now() - began).count() / static_cast<std::int64_t>(part.rows);
    return kept;
  }

  const IndexedFlow& flow_;
  const Turn turn_;
  std::uint64_t position_ = 0;
  std::int64_t row_cost_ = -1;     // nanoseconds summed over all threads, last measurement
  const std::uint64_t row_bytes_;  // 0 if rows differ in size
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

FlowPtr indexed_flow(StagePtr stage, std::uint64_t size) {
  return std::make_unique<IndexedFlow>(std::move(stage), size);
}

}  // namespace penstock
