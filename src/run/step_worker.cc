#include "run/step_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/fault.h"
#include "order/cut.h"
#include "run/compute.h"
#include "sample/rows.h"

namespace penstock {
namespace {

/// The local shares as parts of the step.
struct Parts {
  explicit Parts(const StepInFlight& step) {
    for (std::size_t i = 0; i < step.shares().size(); ++i) rows.push_back(step.rows_of(i));
    for (std::size_t i = 0; i < rows.size(); ++i)
      destinations.push_back({step.shares()[i].first_row, &rows[i]});
  }
  std::vector<BlockView> rows;
  std::vector<Destination> destinations;
};

/// Retries a failed call for several pieces one by one, so that only one step fails and the others
/// are delivered. The failure is reported even if it does not recur.
struct FailedTogether {
  FailedTogether() = default;
  FailedTogether(Failure met, std::span<const Piece> pieces, std::size_t first)
      : end(first + pieces.size()), failure(std::move(met)) {
    std::size_t at = failure.row_known ? 0 : pieces.size() - 1;
    for (; at + 1 < pieces.size() && failure.row >= pieces[at].rows; ++at)
      failure.row -= pieces[at].rows;
    failure.row += pieces[at].step->shares()[pieces[at].share].first_row + pieces[at].first;
    owner = first + at;
    // A smaller call may succeed where a larger one ran out of memory.
    unexplained = failure.kind != Failure::Kind::no_memory;
  }
  /// The result of piece `index`. Exceptions that end the program are raised without a second call,
  /// which might not raise them again.
  template <typename Compute>
  Result<void> resolve(std::size_t index, Compute compute) {
    const bool own = unexplained && index == owner;
    if (own && failure.ends_pass()) return failure;
    Result<void> done = compute();
    if (!done) unexplained = false;
    if (done && own) return failure;
    return done;
  }

  std::size_t end = 0;       // index after the last of the pieces
  std::size_t owner = 0;     // the piece that failed
  bool unexplained = false;  // no piece has failed alone
  Failure failure = {};
};

}  // namespace

StepWorker::StepWorker(std::shared_ptr<const PlanData> plan, const RunStart& start,
                       const RunSettings& settings, ShapeLearner& learner, Fetcher& fetcher,
                       Clock& clock, trace::Recorder& recorder)
    : plan_(std::move(plan)),
      start_(start),
      settings_(settings),
      learner_(learner),
      fetcher_(fetcher),
      clock_(clock),
      recorder_(recorder) {}

void StepWorker::set_shape(BatchShape shape) {
  shape_ = std::move(shape);
  shaped_.store(true, std::memory_order_release);
}

BatchShape StepWorker::shape() const {
  return has_shape() ? shape_ : BatchShape{};
}

void StepWorker::open(StepInFlight& step, std::uint64_t number) {
  const Place place = start_.geometry.step(start_.pass, number);
  step.reads_queued = false;
  if (plan_->program.chains[place.leaf].sequence != nullptr) {
    step.open_asked(number, place);
    return;
  }
  step.open(number, place);
  step.cut(form_of(plan_->program, place), shape_.layout, *shape_.ring);
  step.set_learned(learner_.write_rows(step));
  step.await_rows();
  queue_reads(step);
}

void StepWorker::open_pulled(StepInFlight& step) {
  // A batch size may mean "everything": then a step allocates memory for its own rows.
  const Cut cut = cut_of(step.place(), plan_->options.shares.total);
  const std::size_t needed = std::max<std::size_t>(cut.size(0), cut.slots());
  step.cut(form_of(plan_->program, step.place()),
           needed <= shape_.layout->rows_max ? shape_.layout : layout_for(needed), *shape_.ring);
  step.set_learned(learner_.write_rows(step));
  step.await_rows();
}

/// Starts the reads of a step before a thread works on it. Streams, and the path fields of
/// read_file, are read by the workers.
void StepWorker::queue_reads(StepInFlight& step) {
  if (settings_.threads == 0 || step.ready() || !fetcher_.ahead()) return;
  std::vector<PlannedRead> reads;
  if (step.whole()) {
    collect_reads(plan_->program, step.place(), 0, step.place().count, reads, opening_);
  } else {
    // Learned rows are already computed.
    for (const StepInFlight::Share& share : step.shares())
      collect_reads(plan_->program, step.place(), share.first_row + share.learned,
                    share.rows - share.learned, reads, opening_);
  }
  if (reads.empty()) return;
  step.reads_queued = true;
  fetcher_.queue(step.number(), std::move(reads));
}

std::size_t StepWorker::count_joinable(std::span<const Piece> pieces) const {
  constexpr std::uint64_t kRowsMax = 8192;
  constexpr std::uint64_t kBytesMax = 256 << 10;  // so that the rows are still in cache when copied
  const BatchLayout& layout = *shape_.layout;
  const Program& program = plan_->program;
  // A failed or masked row needs a flag in its own step.
  if (!program.long_blocks || program.stream || settings_.ledger != nullptr || program.masks ||
      !layout.varying.empty() || !layout.may_differ.empty() || !layout.spec.known)
    return 1;
  const std::uint64_t row_bytes = layout.bytes / std::max<std::size_t>(1, layout.rows_max);
  const std::uint64_t rows_max =
      std::min(kRowsMax, kBytesMax / std::max<std::uint64_t>(1, row_bytes));
  const auto first_of = [](const Piece& piece) {
    return piece.step->place().first + piece.step->shares()[piece.share].first_row + piece.first;
  };
  std::uint64_t rows = 0;
  std::size_t count = 0;
  for (const Piece& piece : pieces) {
    if (piece.whole) break;
    const Place& place = piece.step->place();
    const Place& before = pieces.front().step->place();
    if (place.period > 0 || rows + piece.rows > rows_max) break;
    if (count > 0 && (place.leaf != before.leaf || place.turn != before.turn ||
                      first_of(piece) != first_of(pieces.front()) + rows))
      break;
    rows += piece.rows;
    ++count;
  }
  return std::max<std::size_t>(1, count);
}

Result<void> StepWorker::compute_joined(const Program& program, std::span<const Piece> pieces,
                                        const Context& context) {
  const Scratch::Frame frame(context.scratch);
  const Piece& first = pieces.front();
  Place place = first.step->place();
  place.first += first.step->shares()[first.share].first_row + first.first;
  place.count = 0;
  std::vector<BlockView> outs;
  outs.reserve(pieces.size());
  for (const Piece& piece : pieces) {
    outs.push_back(
        cut_rows(piece.step->rows_of(piece.share), piece.first, piece.rows, context.scratch));
    place.count += piece.rows;
  }
  return compute_together(program, place, outs, context);
}

std::uint64_t StepWorker::work(Task& task, const Context& context) {
  std::uint64_t rows = 0;
  FailedTogether failed;
  for (std::size_t i = 0; i < task.pieces.size();) {
    PENSTOCK_SCHEDULE();
    if (task.activity.cancelled) break;
    const auto left = std::span<const Piece>(task.pieces).subspan(i);
    const std::size_t count = i < failed.end ? 1 : count_joinable(left);
    if (count > 1) {
      Result<void> done = compute_joined(plan_->program, left.first(count), context);
      if (!done) {
        failed = FailedTogether(std::move(done.failure()), left.first(count), i);
        continue;
      }
      for (const Piece& piece : left.first(count)) finish(piece, {}, task);
    } else {
      const Piece& piece = left.front();
      if (i < failed.end) {
        finish(piece, failed.resolve(i, [&] { return compute(piece, context); }), task);
      } else {
        finish(piece, compute(piece, context), task);
      }
    }
    for (const Piece& piece : left.first(count)) rows += piece.rows;
    i += count;
  }
  return rows;
}

Result<void> StepWorker::compute(const Piece& piece, const Context& context) {
  if (piece.step->asked() != nullptr) return compute_asked(*piece.step, context);
  const StepInFlight& step = *piece.step;
  const BlockView* const given = given_rows(step);
  if (piece.whole) {
    if (learner_.write_step(*piece.step)) return {};
    const Parts parts(step);
    return compute_step(plan_->program, step.place(), parts.destinations, context, given);
  }
  // Blocks of at most a few thousand rows keep intermediate results in cache. Rows of one or two
  // numbers go in longer blocks to functions whose calls are expensive.
  constexpr std::uint64_t kTinyRowBytes = 32;  // including the row's id and weight
  const bool tiny = shape_.layout->bytes <= kTinyRowBytes * shape_.layout->rows_max;
  const std::uint64_t block_rows = tiny ? 4096 : 2048;
  const Scratch::Frame frame(context.scratch);
  const BlockView share = step.rows_of(piece.share);
  const std::uint64_t first_row = step.shares()[piece.share].first_row + piece.first;
  for (std::uint64_t done = 0; done < piece.rows; done += block_rows) {
    const std::uint64_t rows = std::min(block_rows, piece.rows - done);
    const BlockView out = cut_rows(share, piece.first + done, rows, context.scratch);
    auto result = compute_rows(plan_->program, step.place(), first_row + done, out, context, given);
    if (!result) {
      result.failure().row += first_row + done;
      return result;
    }
    PENSTOCK_SCHEDULE();
  }
  return {};
}

Failure StepWorker::too_few_rows(const StepInFlight& step, std::size_t rows) const {
  const LeafProgram& chain = plan_->program.chains[step.place().leaf];
  Failure failure{
      fmt::format("{}: get({}) returned {} rows for {} processes, and some would have none",
                  chain.sequence->title(), step.asked()->index, rows, plan_->options.shares.total)};
  failure.remedy = "avoid batches that small, or set empty=deliver if the loop can skip a step";
  return failure;
}

std::shared_ptr<const BatchLayout> StepWorker::layout_for(std::size_t rows) {
  Lock lock(mutex_);
  auto& layout = layouts_[rows];
  if (!layout)
    layout = std::make_shared<BatchLayout>(shape_.layout->spec, rows, shape_.layout->open);
  return layout;
}

/// The number of rows, and so the cut, is known only when the batch arrives.
Result<void> StepWorker::compute_asked(StepInFlight& step, const Context& context) {
  SequenceBatch& batch = step.asked()->batch;
  if (auto learned = learner_.take_batch(step.number())) {
    batch = std::move(*learned);
  } else if (auto done = ask_sequence(plan_->program, step.place(), step.number(), batch, context);
             !done) {
    return done;
  }
  const BlockView& given = batch.view;
  const Shares& shares = plan_->options.shares;
  if (settings_.no_empty_share && given.rows < shares.total) return too_few_rows(step, given.rows);
  Place place = step.place();
  place.first = 0;
  place.count = given.rows;
  step.set_place(place);
  const auto layout = layout_for(Cut{given.rows, shares.total}.size(0));
  step.bytes.resize(layout->bytes * shares.count);
  step.cut(form_of(plan_->program, place), layout, *shape_.ring);
  if (step.whole() && learner_.write_step(step)) return {};
  step.set_learned(learner_.write_rows(step));
  const Parts parts(step);
  if (step.whole()) return compute_step(plan_->program, place, parts.destinations, context, &given);
  for (std::size_t i = 0; i < parts.rows.size(); ++i) {
    const Scratch::Frame frame(context.scratch);
    const StepInFlight::Share& share = step.shares()[i];
    const std::uint64_t first_row = share.first_row + share.learned;
    const BlockView rows =
        cut_rows(parts.rows[i], share.learned, parts.rows[i].rows - share.learned, context.scratch);
    auto done = compute_rows(plan_->program, place, first_row, rows, context, &given);
    if (done) continue;
    done.failure().row += first_row;
    return done;
  }
  return {};
}

void StepWorker::finish(const Piece& piece, Result<void> done, Task& task) {
  StepInFlight& step = *piece.step;
  if (!done) step.fail(std::move(done.failure()));
  if (!step.arrived(piece.rows)) return;
  if (!step.has_failed()) task.step_bytes = std::max(task.step_bytes, step.complete());
  recorder_.ready(step.number(), step.rows_here(), task.began, clock_.now());
  if (step.reads_queued) fetcher_.forget(step.number());
  step.set_ready();
}

}  // namespace penstock
