#include "run/pass_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/fault.h"
#include "base/printable.h"
#include "base/report.h"
#include "order/cut.h"
#include "plan/failures.h"
#include "run/compute.h"
#include "run/flying.h"
#include "sample/rows.h"
#include "trace/trace.h"

namespace penstock {
namespace {

Pacing::Limits limits(const Mold& mold, const RunSettings& settings, const PlanData& plan) {
  const std::size_t bytes = mold.layout ? mold.layout->bytes : 1;
  return {.threads = settings.threads,
          .step_rows = std::max<std::uint64_t>(1, settings.mold.rows_max * settings.mold.shares),
          .step_bytes = bytes * settings.mold.shares,
          .bytes_max = settings.lookahead_bytes,
          .steps_wished = settings.lookahead_steps,
          .rows_at_once = plan.program.rows_at_once};
}

}  // namespace

PassRun::PassRun(std::shared_ptr<const PlanData> plan, Mold mold, RunStart start,
                 const RunSettings& settings)
    : plan_(std::move(plan)),
      start_(std::move(start)),
      settings_(settings),
      end_(plan_->program.stream ? kEndless : start_.geometry.steps()),
      stream_(plan_->program.stream != nullptr),
      trace_run_(trace::new_run()),
      clock_(settings.clock != nullptr ? *settings.clock : Clock::real()),
      sequencer_(plan_, start_.pass, start_.stream),
      gang_(
          settings.threads,
          [this] {
            Lock lock(mutex_);
            if (pool_ != nullptr && !stopped_) pool_->wake();
          },
          clock_),
      pulled_position_(start_.stream.position),
      pulled_step_(start_.step),
      fetcher_({settings.io != nullptr ? settings.io : &Io::real(), &clock_,
                settings.pace ? settings.pace : std::make_shared<ReadPace>(),
                &ByteBudget::process(), settings.lookahead_bytes}),
      opened_(start_.step),
      delivered_(start_.step),
      reached_(start_.stream),
      pacing_(limits(mold, settings, *plan_)) {
  if (mold.layout) set_mold(std::move(mold));
  window_ = settings_.threads == 0 ? 1 : pacing_.window();
}

void PassRun::set_mold(Mold mold) {
  Lock lock(mutex_);
  mold_ = std::move(mold);
  step_bytes_ = mold_.layout->bytes * plan_->options.shares.count;
  pacing_ = Pacing(limits(mold_, settings_, *plan_), pacing_log_);
  window_ = settings_.threads == 0 ? 1 : pacing_.window();
  molded_ = true;
}

Mold PassRun::mold() const {
  Lock lock(mutex_);
  return molded_ ? mold_ : Mold{};
}

PassRun::~PassRun() = default;

void PassRun::start(const std::shared_ptr<PassRun>& self, Pool& pool) {
  if (self->settings_.threads == 0) return;
  self->pool_ = &pool;
  try {
    pool.attach(self, self->settings_.threads, {.while_waiting = self->settings_.while_waiting});
  } catch (...) {
    self->stop(nullptr);  // nobody works on it: who asks again must start another
    throw;
  }
}

void PassRun::stop(Pool* pool) {
  {
    Lock lock(mutex_);
    stopped_ = true;
    stop_asked_ = true;
    for (Task* task : tasks_) task->activity.cancelled = true;
    head_ready_.notify_all();
  }
  fetcher_.cancel();
  if (pool == nullptr) return;
  constexpr auto kPatience = std::chrono::milliseconds(500);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  if (const unsigned stuck = pool->detach(*this, kPatience); stuck > 0) report_abandoned(stuck);
  if (const auto stuck = fetcher_.stop(until - std::chrono::steady_clock::now()); !stuck.empty()) {
    std::string text = fmt::format("{} reads did not come back and were abandoned", stuck.size());
    for (const std::string& file : stuck) text += fmt::format("\n  of {}", printable(file));
    report(text);
  }
}

bool PassRun::stopped() const {
  return stop_asked_;
}

std::vector<Pacing::Decision> PassRun::decisions() const {
  return pacing_log_->decisions();
}

bool PassRun::open_step() {
  if (stream_ || !molded_) return false;
  const std::uint64_t step = opened_.load(std::memory_order_relaxed);
  if (step >= end_ || in_flight() >= window_.load(std::memory_order_relaxed)) return false;
  BudgetLease bytes;
  if (!bytes.take(ByteBudget::process(), step_bytes_, in_flight() == 0)) return false;
  std::unique_ptr<Flying> flying = spare_flying();
  flying->bytes = std::move(bytes);
  flying->place = start_.geometry.step(start_.pass, step);
  flying->asked_for = plan_->program.chains[flying->place.leaf].sequence != nullptr;
  if (flying->asked_for) {
    await_answer(*flying, step);
  } else {
    fill(*flying, step, mold_.layout);
    begin_flight(*flying);
  }
  queue_reads(*flying);
  if (flying->ready) head_ready_.notify_one();
  flying_.push_back(std::move(flying));
  opened_.store(step + 1, std::memory_order_relaxed);
  return true;
}

std::unique_ptr<PassRun::Flying> PassRun::spare_flying() {
  if (spare_.empty()) return std::make_unique<Flying>();
  std::unique_ptr<Flying> flying = std::move(spare_.back());
  spare_.pop_back();
  return flying;
}

void PassRun::begin_flight(Flying& flying) {
  flying.learned_rows = write_learned_rows(flying);
  flying.missing = flying.rows_here - flying.learned_rows;
  flying.ready = false;
  if (flying.missing > 0) return;
  complete(flying);
  flying.ready = true;
}

void PassRun::fill(Flying& flying, std::uint64_t step,
                   const std::shared_ptr<const BatchLayout>& layout) {
  flying.step = step;
  flying.whole = is_whole(plan_->program, flying.place);
  flying.shares.clear();
  flying.first_row.clear();
  flying.share_rows.clear();
  flying.rows_here = flying.learned_rows = 0;
  const Shares& shares = plan_->options.shares;
  const Cut cut = cut_of(flying.place, shares.total);
  const bool flags = settings_.ledger != nullptr || plan_->program.masks;
  flying.failed.resize(flags ? shares.count : 0);
  for (std::uint32_t share = shares.first; share < shares.first + shares.count; ++share) {
    const ShareFacts facts{start_.pass,     step,     share,      shares.total,
                           cut.size(share), cut.rows, cut.slots()};
    flying.shares.push_back(mold_.ring->acquire(layout, facts));
    flying.first_row.push_back(cut.first(share));
    flying.share_rows.push_back(cut.size(share));
    if (flags) flying.failed[share - shares.first].assign(facts.rows, kRowGood);
    flying.rows_here += cut.size(share);
  }
}

bool PassRun::claim(std::vector<Piece>& pieces) {
  if (!molded_) return false;
  open_ahead();
  // No thread takes so much that the others find the window empty.
  const std::uint64_t window = window_.load(std::memory_order_relaxed);
  const std::uint64_t fair = mold_.layout->rows_max * plan_->options.shares.count * window /
                             (2ULL * std::max(1U, settings_.threads));
  const std::uint64_t task_rows =
      settings_.threads == 0 ? UINT64_MAX
                             : std::max<std::uint64_t>(1, std::min(pacing_.task_rows(), fair));
  std::uint64_t budget = task_rows;
  while (budget > 0) {
    if (claim_step_ == flying_.size() && !open_step()) break;
    Flying& flying = *flying_[claim_step_];
    if (flying.ready || claim_share_ == flying.parts()) {
      ++claim_step_;
      claim_share_ = 0;
      claim_row_ = 0;
      if (settings_.threads == 0 && !pieces.empty()) break;
      continue;
    }
    if (flying.whole) {
      pieces.push_back({&flying, 0, 0, flying.rows_here, true});
      budget -= std::min(budget, flying.rows_here);
      claim_share_ = flying.parts();
      if (flying.asked_for) break;  // nobody knows how long the answer takes
      continue;
    }
    const std::uint64_t share_rows = flying.share_rows[claim_share_];
    if (claim_row_ == 0 && flying.learned_rows > 0)
      claim_row_ = flying.learned_rows_of(claim_share_);
    std::uint64_t rows = share_rows - std::min(share_rows, claim_row_);
    if (rows > budget) {
      // A share that fits into a task stays whole: each piece of one costs a call.
      if (share_rows <= task_rows && 2 * budget < rows) break;
      if (share_rows > task_rows) rows = budget;
    }
    if (rows > 0) pieces.push_back({&flying, claim_share_, claim_row_, rows, false});
    budget -= std::min(budget, rows);
    claim_row_ += rows;
    if (claim_row_ >= share_rows) {
      ++claim_share_;
      claim_row_ = 0;
    }
  }
  return !pieces.empty();
}

BlockView PassRun::rows_of(const Flying& flying, std::size_t share) const {
  BlockView rows = flying.shares[share]->rows();
  // Each thread writes flags of its own rows only.
  if (!flying.failed.empty())
    rows.identity.failed = const_cast<std::uint8_t*>(flying.failed[share].data());
  if (settings_.ledger != nullptr) rows.identity.failures = &flying.failures;
  return rows;
}

Result<void> PassRun::compute(const Piece& piece) {
  Scratch& scratch = thread_scratch();
  if (piece.step->asked_for) return compute_asked(*piece.step);
  const Flying& flying = *piece.step;
  const BlockView* const pulled = stream_ ? &flying.given->rows : nullptr;
  if (piece.whole && write_learned_step(*piece.step)) return {};
  if (piece.whole) {
    std::vector<BlockView> shares;
    std::vector<Destination> destinations;
    for (std::size_t i = 0; i < flying.shares.size(); ++i) shares.push_back(rows_of(flying, i));
    for (std::size_t i = 0; i < shares.size(); ++i)
      destinations.push_back({flying.first_row[i], &shares[i]});
    return compute_step(plan_->program, flying.place, destinations, scratch, pulled);
  }
  // Blocks of some thousand rows at most, so that what passes between ops stays in cache; where
  // rows are a number or two a function that is dear to enter gets more of them.
  constexpr std::uint64_t kTinyRowBytes = 32;  // the row's id and weight included
  const bool tiny = mold_.layout->bytes <= kTinyRowBytes * mold_.layout->rows_max;
  const std::uint64_t block_rows = tiny ? 4096 : 2048;
  const Scratch::Frame frame(scratch);
  const BlockView share = rows_of(flying, piece.share);
  for (std::uint64_t done = 0; done < piece.rows; done += block_rows) {
    const std::uint64_t rows = std::min(block_rows, piece.rows - done);
    const BlockView out = cut_rows(share, piece.first + done, rows, scratch);
    auto result =
        compute_rows(plan_->program, flying.place,
                     flying.first_row[piece.share] + piece.first + done, out, scratch, pulled);
    if (!result) {
      result.failure().row += flying.first_row[piece.share] + piece.first + done;
      return result;
    }
    PENSTOCK_SCHEDULE();
  }
  return {};
}

std::uint64_t PassRun::complete(Flying& flying) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < flying.shares.size(); ++i) {
    if (!flying.failed.empty())
      flying.shares[i]->drop_rows(flying.failed[i], settings_.no_empty_share);
    flying.shares[i]->gather();
    bytes += flying.shares[i]->bytes();
  }
  flying.bytes.resize(bytes);
  return bytes;
}

void PassRun::finish(const Piece& piece, Result<void> done, Task& task) {
  Flying& flying = *piece.step;
  if (!done) {
    // Of several failures in a step the one of its first row is told, whoever was faster.
    Lock lock(flying.mutex);
    if (!flying.failure || done.failure().row < flying.failure->row)
      flying.failure = std::move(done.failure());
  }
  if (flying.missing.fetch_sub(piece.rows) != piece.rows) return;
  bool whole = false;
  {
    Lock lock(flying.mutex);
    whole = !flying.failure.has_value();
  }
  if (whole) task.step_bytes = std::max(task.step_bytes, complete(flying));
  trace::record({trace::Kind::ready, trace_run_, static_cast<std::uint32_t>(flying.rows_here),
                 flying.step, count_of(task.began), count_of(clock_.now())});
  if (flying.reads_queued) fetcher_.forget(flying.step);
  flying.ready = true;
}

bool PassRun::choose_task(Task& task) {
  if (stopped_ || broken_) return false;
  if (gang_.wants_help()) {
    task.kind = Task::Kind::help;
  } else if (claim(task.pieces)) {
    const Piece& first = task.pieces.front();
    task.first_step = first.step->step;
    task.first_share = plan_->options.shares.first + static_cast<std::uint32_t>(first.share);
    task.first_row = first.first;
    task.leaf = first.step->place.leaf;
    if (first.step->asked_for) task.asked_index = first.step->index;
    return true;
  } else if (!alone_ && may_pull()) {
    task.kind = Task::Kind::pull;
    alone_ = true;
  } else if (!stream_ && !molded_ && !alone_) {
    task.kind = Task::Kind::learn;
    alone_ = true;
  } else {
    return false;
  }
  task.first_step = opened_.load(std::memory_order_relaxed);
  return true;
}

bool PassRun::begin_task(Task& task) {
  Lock lock(mutex_);
  if (!choose_task(task)) {
    // Say so before looking once more: whoever delivers in between sees it and wakes us.
    starved_.store(true);
    if (!choose_task(task)) return false;
  }
  task.began = clock_.now();
  tasks_.push_back(&task);
  return true;
}

void PassRun::wake_if_starved() {
  if (pool_ != nullptr && !stopped_ && starved_.exchange(false)) pool_->wake();
}

void PassRun::end_task(Task& task, std::uint64_t rows) {
  if (left_task(task, rows)) head_ready_.notify_one();  // not under the lock, which it takes
}

bool PassRun::left_task(Task& task, std::uint64_t rows) {
  Lock lock(mutex_);
  std::erase(tasks_, &task);
  if (task.kind == Task::Kind::pull || task.kind == Task::Kind::learn) {
    alone_ = false;
    // What was pulled, or can be opened now, is work for the others.
    wake_if_starved();
    return consumer_waits_;
  }
  if (task.kind == Task::Kind::help) return false;
  pacing_.read_ahead(fetcher_.rows_ahead());
  pacing_.measured(rows, count_of(clock_.now() - task.began));
  if (task.step_bytes > 0) {
    pacing_.measured_bytes(task.step_bytes);
    step_bytes_.store(pacing_.step_bytes(), std::memory_order_relaxed);
  }
  if (settings_.threads > 0) window_.store(pacing_.window(), std::memory_order_relaxed);
  return consumer_waits_ && !flying_.empty() && flying_.front()->ready;
}

std::size_t PassRun::count_joinable(std::span<const Piece> pieces) const {
  constexpr std::uint64_t kRowsMax = 8192;
  constexpr std::uint64_t kBytesMax = 256 << 10;  // so that the rows are still in cache when copied
  const BatchLayout& layout = *mold_.layout;
  // A failed or masked row needs a flag in its own step.
  if (!plan_->program.long_blocks || stream_ || settings_.ledger != nullptr ||
      plan_->program.masks || !layout.varying.empty() || !layout.spec.known)
    return 1;
  const std::uint64_t row_bytes = layout.bytes / std::max<std::size_t>(1, layout.rows_max);
  const std::uint64_t rows_max =
      std::min(kRowsMax, kBytesMax / std::max<std::uint64_t>(1, row_bytes));
  const auto first_of = [](const Piece& piece) {
    return piece.step->place.first + piece.step->first_row[piece.share] + piece.first;
  };
  std::uint64_t rows = 0;
  std::size_t count = 0;
  for (const Piece& piece : pieces) {
    const Flying& step = *piece.step;
    if (piece.whole || step.place.period > 0 || rows + piece.rows > rows_max) break;
    const Place& before = pieces.front().step->place;
    if (count > 0 && (step.place.leaf != before.leaf || step.place.turn != before.turn ||
                      first_of(piece) != first_of(pieces.front()) + rows))
      break;
    rows += piece.rows;
    ++count;
  }
  return std::max<std::size_t>(1, count);
}

Result<void> PassRun::compute_joined(std::span<const Piece> pieces) {
  Scratch& scratch = thread_scratch();
  const Scratch::Frame frame(scratch);
  const Flying& first = *pieces.front().step;
  Place place = first.place;
  place.first += first.first_row[pieces.front().share] + pieces.front().first;
  place.count = 0;
  std::vector<BlockView> outs;
  outs.reserve(pieces.size());
  for (const Piece& piece : pieces) {
    outs.push_back(cut_rows(rows_of(*piece.step, piece.share), piece.first, piece.rows, scratch));
    place.count += piece.rows;
  }
  return compute_together(plan_->program, place, outs, scratch);
}

std::uint64_t PassRun::compute_pieces(Task& task) {
  std::uint64_t rows = 0;
  std::size_t alone_until = 0;  // pieces before it failed together and are computed one by one
  for (std::size_t i = 0; i < task.pieces.size();) {
    PENSTOCK_SCHEDULE();
    if (task.activity.cancelled) break;
    const auto left = std::span<const Piece>(task.pieces).subspan(i);
    std::size_t count = i < alone_until ? 1 : count_joinable(left);
    if (count > 1) {
      Result<void> done = compute_joined(left.first(count));
      if (!done) {
        alone_until = i + count;
        // The failure belongs to one step; the others are delivered. What asks the program to end
        // is raised at once: a second call might not raise it again.
        if (!done.failure().ends_pass()) continue;
        count = 1;
      }
      for (const Piece& piece : left.first(count)) finish(piece, std::exchange(done, {}), task);
    } else {
      const Piece& piece = left.front();
      finish(piece, compute(piece), task);
    }
    for (const Piece& piece : left.first(count)) rows += piece.rows;
    i += count;
  }
  return rows;
}

bool PassRun::run_one() {
  Task task;
  trace::Activity* const before = trace::set_activity(&task.activity);
  Reader* const reader_before = set_reader(&fetcher_);
  bool did = false;
  try {
    did = begin_task(task);
    std::uint64_t rows = 0;
    if (did) {
      if (task.kind == Task::Kind::rows) rows = compute_pieces(task);
      if (task.kind == Task::Kind::pull) rows = pull_steps(task);
      if (task.kind == Task::Kind::learn) learn();
      if (task.kind == Task::Kind::help) gang_.help(thread_scratch());
      const auto kind = task.kind == Task::Kind::pull ? trace::Kind::pull : trace::Kind::block;
      trace::record({kind, trace_run_, static_cast<std::uint32_t>(rows), task.first_step,
                     count_of(task.began), count_of(clock_.now())});
      end_task(task, rows);
    }
  } catch (...) {
    Lock lock(mutex_);
    std::erase(tasks_, &task);
    if (task.kind == Task::Kind::pull || task.kind == Task::Kind::learn) alone_ = false;
    if (!broken_) broken_ = std::current_exception();
    head_ready_.notify_all();
    did = false;
  }
  set_reader(reader_before);
  trace::set_activity(before);
  return did;
}

}  // namespace penstock
