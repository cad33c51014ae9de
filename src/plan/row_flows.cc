// Flows that change, drop or count rows.
// tested in src/plan/flows_test.cc
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plan/flows.h"
#include "plan/run_stage.h"
#include "sample/rows.h"

namespace penstock {
namespace {

/// A flow with one input, whose cursor holds the input's cursor.
template <typename Made, typename... Facts>
class OneInputFlow final : public Flow {
 public:
  OneInputFlow(FlowPtr input, const ElementSpec& spec, Facts... facts)
      : Flow(spec, input->ids()), input_(std::move(input)), facts_(std::move(facts)...) {}
  [[nodiscard]] CursorPtr open(Turn turn) const override {
    return std::apply(
        [&](const Facts&... facts) { return std::make_unique<Made>(*input_, turn, facts...); },
        facts_);
  }

 private:
  const FlowPtr input_;
  const std::tuple<Facts...> facts_;
};
template <typename Made, typename... Facts>
FlowPtr one_input(FlowPtr input, const ElementSpec& spec, Facts... facts) {
  return std::make_unique<OneInputFlow<Made, Facts...>>(std::move(input), spec,
                                                        std::move(facts)...);
}

using RowCursor = CursorOver<Cursor, Cursor>;
using SharedStage = std::shared_ptr<const Stage>;

/// Rows through ops. Those that cannot be made leave the stream, and others come for them.
class MapCursor final : public RowCursor {
 public:
  MapCursor(const Flow& input, Turn turn, SharedStage stage)
      : RowCursor(input.open(turn)), turn_(turn), stage_(std::move(stage)), before_(input.spec()) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    std::size_t made = 0;
    while (made < out.rows) {
      const std::size_t wanted = out.rows - made;
      before_.reserve(wanted);
      auto got = input_->pull(before_.rows(0, wanted), pulling);
      if (!got) return got;
      if (*got > 0) {
        const Scratch::Frame frame(pulling.scratch);
        const BlockView in = before_.rows(0, *got);
        auto kept = run_stage(*stage_, {turn_, 0, &in}, cut_rows(out, made, *got, pulling.scratch),
                              pulling);
        if (!kept) return kept;
        made += *kept;
      }
      if (*got < wanted) break;
    }
    return made;
  }

 private:
  const Turn turn_;
  const SharedStage stage_;
  RowBuffer before_;
};

/// Asks `predicate` about rows that were pulled; `keep` has 1 where it holds.
Result<void> judge(const Stage& predicate, Turn turn, const BlockView& rows, std::uint8_t* keep,
                   std::uint8_t* failed, Pulling& pulling) {
  static const ElementSpec kVerdict = ElementSpec::single(Dtype::boolean);
  const Scratch::Frame frame(pulling.scratch);
  BlockView verdict;
  verdict.rows = rows.rows;
  verdict.spec = &kVerdict;
  const Column column{reinterpret_cast<std::byte*>(keep), 1, nullptr};
  verdict.columns = {&column, 1};
  verdict.identity = {pulling.scratch.array<std::uint64_t>(rows.rows),
                      pulling.scratch.array<std::uint64_t>(rows.rows)};
  std::fill_n(failed, rows.rows, std::uint8_t{0});
  auto done = run_stage(predicate, {turn, 0, &rows}, verdict, pulling, failed);
  if (!done) return std::move(done.failure());
  for (std::size_t row = 0; row < rows.rows; ++row)
    if (failed[row] != 0) keep[row] = 0;
  return {};
}

class FilterCursor final : public RowCursor {
 public:
  FilterCursor(const Flow& input, Turn turn, SharedStage predicate)
      : RowCursor(input.open(turn)), turn_(turn), predicate_(std::move(predicate)) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    std::size_t kept = 0;
    while (kept < out.rows) {
      const Scratch::Frame frame(pulling.scratch);
      const std::size_t wanted = out.rows - kept;
      auto got = input_->pull(cut_rows(out, kept, wanted, pulling.scratch), pulling);
      if (!got) return got;
      if (*got > 0) {
        const BlockView rows = cut_rows(out, kept, *got, pulling.scratch);
        auto* const keep = pulling.scratch.array<std::uint8_t>(*got);
        auto* const failed = pulling.scratch.array<std::uint8_t>(*got);
        auto done = judge(*predicate_, turn_, rows, keep, failed, pulling);
        if (!done) return std::move(done.failure());
        kept += keep_rows(rows, {keep, *got});
      }
      if (*got < wanted) break;
    }
    return kept;
  }

 private:
  const Turn turn_;
  const SharedStage predicate_;
};

/// Row by row: nothing behind the end may be pulled, or fail.
class TakeWhileCursor final : public RowCursor {
 public:
  TakeWhileCursor(const Flow& input, Turn turn, SharedStage predicate)
      : RowCursor(input.open(turn)), turn_(turn), predicate_(std::move(predicate)) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    std::size_t kept = 0;
    while (kept < out.rows && ended_ == 0) {
      const Scratch::Frame frame(pulling.scratch);
      const BlockView row = cut_rows(out, kept, 1, pulling.scratch);
      auto got = input_->pull(row, pulling);
      if (!got) return got;
      std::uint8_t keep = 0;
      std::uint8_t failed = 0;
      if (*got > 0)
        if (auto done = judge(*predicate_, turn_, row, &keep, &failed, pulling); !done)
          return std::move(done.failure());
      // One that could not be asked is left out; the first that does not pass ends it.
      ended_ = keep == 0 && failed == 0 ? 1 : 0;
      kept += keep;
    }
    return kept;
  }

 private:
  std::span<std::uint64_t> place() override { return {&ended_, 1}; }

  const Turn turn_;
  const SharedStage predicate_;
  std::uint64_t ended_ = 0;  // 1 at the end
};

class TakeCursor final : public RowCursor {
 public:
  TakeCursor(const Flow& input, Turn turn, std::uint64_t count)
      : RowCursor(input.open(turn)), left_(count) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    const std::size_t wanted = std::min<std::uint64_t>(out.rows, left_);
    if (wanted == 0) return std::size_t{0};
    const Scratch::Frame frame(pulling.scratch);
    auto got = input_->pull(cut_rows(out, 0, wanted, pulling.scratch), pulling);
    if (got) left_ -= *got;
    return got;
  }

 private:
  std::span<std::uint64_t> place() override { return {&left_, 1}; }

  std::uint64_t left_;
};

class SkipCursor final : public RowCursor {
 public:
  SkipCursor(const Flow& input, Turn turn, std::uint64_t count)
      : RowCursor(input.open(turn)), spec_(input.spec()), left_(count) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    if (left_ > 0) {
      auto skipped = skip_rows(*input_, spec_, left_, pulling);
      if (!skipped) return std::move(skipped.failure());
      left_ = 0;
    }
    return input_->pull(out, pulling);
  }

 private:
  std::span<std::uint64_t> place() override { return {&left_, 1}; }

  const ElementSpec& spec_;
  std::uint64_t left_;
};

class ShardCursor final : public RowCursor {
 public:
  ShardCursor(const Flow& input, Turn turn, std::uint64_t count, std::uint64_t index)
      : RowCursor(input.open(turn)), buffer_(input.spec()), count_(count), before_(index) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    constexpr std::uint64_t kAtOnce = 1024;
    std::size_t made = 0;
    while (made < out.rows) {
      // No further than to the last one that is needed.
      const std::uint64_t more = std::min(out.rows - made - 1, kAtOnce);
      const std::uint64_t needed =
          before_ >= kAtOnce || count_ >= kAtOnce ? kAtOnce : before_ + more * count_ + 1;
      const std::size_t wanted =
          before_ < kAtOnce && more == 0 ? before_ + 1 : std::min(needed, kAtOnce);
      buffer_.reserve(wanted);
      auto got = input_->pull(buffer_.rows(0, wanted), pulling);
      if (!got) return got;
      const Scratch::Frame frame(pulling.scratch);
      auto* const picks = pulling.scratch.array<std::uint64_t>(*got);
      std::size_t picked = 0;
      for (std::uint64_t row = before_; row < *got; row += count_) picks[picked++] = row;
      pick_rows(buffer_.rows(0, *got), {picks, picked},
                cut_rows(out, made, picked, pulling.scratch));
      before_ = before_ + picked * count_ - *got;
      made += picked;
      if (*got < wanted) break;
    }
    return made;
  }

 private:
  std::span<std::uint64_t> place() override { return {&before_, 1}; }

  RowBuffer buffer_;
  const std::uint64_t count_;
  std::uint64_t before_;  // rows to pass by before the next one
};

class EnumerateCursor final : public RowCursor {
 public:
  EnumerateCursor(const Flow& input, Turn turn)
      : RowCursor(input.open(turn)), spec_(input.spec()) {}

  Result<std::size_t> pull(const BlockView& out, Pulling& pulling) override {
    auto got = out.samples == nullptr ? columns(out, pulling) : samples(out, pulling);
    if (got) number_ += *got;
    return got;
  }

 private:
  std::span<std::uint64_t> place() override { return {&number_, 1}; }

  Result<std::size_t> columns(const BlockView& out, Pulling& pulling) {
    auto* const numbers = reinterpret_cast<std::uint64_t*>(out.columns[0].data);
    for (std::size_t row = 0; row < out.rows; ++row) numbers[row] = number_ + row;
    BlockView part = out;
    part.spec = &spec_;
    part.columns = out.columns.subspan(1);
    return input_->pull(part, pulling);
  }
  Result<std::size_t> samples(const BlockView& out, Pulling& pulling) {
    auto got = pull_as(*input_, spec_, out, pulling);
    for (std::size_t row = 0; got && row < *got; ++row)
      out.samples[row] = Sample::tuple(
          {Tensor::scalar(static_cast<std::int64_t>(number_ + row)), out.samples[row]});
    return got;
  }

  const ElementSpec& spec_;
  std::uint64_t number_ = 0;
};

}  // namespace

FlowPtr map_flow(FlowPtr input, StagePtr stage) {
  const ElementSpec spec = stage->spec();
  return one_input<MapCursor>(std::move(input), spec, SharedStage(std::move(stage)));
}
FlowPtr filter_flow(FlowPtr input, StagePtr predicate) {
  const ElementSpec spec = input->spec();
  return one_input<FilterCursor>(std::move(input), spec, SharedStage(std::move(predicate)));
}
FlowPtr take_while_flow(FlowPtr input, StagePtr predicate) {
  const ElementSpec spec = input->spec();
  return one_input<TakeWhileCursor>(std::move(input), spec, SharedStage(std::move(predicate)));
}
FlowPtr take_flow(FlowPtr input, std::uint64_t count) {
  const ElementSpec spec = input->spec();
  return one_input<TakeCursor>(std::move(input), spec, count);
}
FlowPtr skip_flow(FlowPtr input, std::uint64_t count) {
  const ElementSpec spec = input->spec();
  return one_input<SkipCursor>(std::move(input), spec, count);
}
FlowPtr shard_flow(FlowPtr input, std::uint64_t count, std::uint64_t index) {
  const ElementSpec spec = input->spec();
  return one_input<ShardCursor>(std::move(input), spec, count, index);
}
FlowPtr enumerate_flow(FlowPtr input, const ElementSpec& spec) {
  return one_input<EnumerateCursor>(std::move(input), spec);
}

}  // namespace penstock
