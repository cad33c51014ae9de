#include "run/consumer.h"

#include <algorithm>
#include <utility>

#include "base/cancel_scope.h"
#include "base/pool.h"
#include "base/report.h"

namespace penstock {

Consumer::Consumer(std::shared_ptr<const PlanData> plan, const RunStart& start,
                   const RunSettings& settings, Window& window, std::function<bool()> work,
                   Clock& clock, trace::Recorder& recorder)
    : plan_(std::move(plan)),
      start_(start),
      settings_(settings),
      end_(plan_->program.stream ? kEndless : start_.geometry.steps()),
      stream_(plan_->program.stream != nullptr),
      window_(window),
      work_(std::move(work)),
      clock_(clock),
      recorder_(recorder),
      reached_(start_.stream) {}

void Consumer::look_up(Nanoseconds& looked) {
  constexpr Nanoseconds kPause = std::chrono::milliseconds(50);
  if (!settings_.while_waiting || clock_.now() - looked < kPause) return;
  looked = clock_.now();
  settings_.while_waiting();
}

Consumer::Outcome Consumer::await(Window::Awaited awaited, std::optional<Nanoseconds> until) {
  constexpr Nanoseconds kLookAgainMax = std::chrono::milliseconds(50);
  Nanoseconds look_again = std::chrono::microseconds(200);
  StallWatch watch(settings_.stall_after);
  bool waited = false;
  Nanoseconds began{0};
  Nanoseconds looked = settings_.while_waiting ? clock_.now() : Nanoseconds{0};
  const auto is_late = [&] { return until && clock_.now() >= *until; };
  const auto record_wait = [&] {
    if (waited) recorder_.waited(window_.delivered(), began, clock_.now());
  };
  // A loader inside a function of another loader: all pool threads may be blocked in the same way,
  // so this thread computes.
  const bool works = settings_.threads == 0 || Pool::on_own_thread();
  while (true) {
    look_up(looked);
    if (CancelScope::cancelled())
      throw CancelledError("the function that waited for a batch was cancelled");
    const bool worked =
        works && window_.look(awaited) == Window::Found::nothing && !is_late() && work_();
    const Window::Found found = window_.look(awaited);
    if (found == Window::Found::end) return Outcome::end;
    if (found == Window::Found::awaited) break;
    if (is_late()) {
      record_wait();
      return Outcome::late;
    }
    if (settings_.threads == 0 || worked) continue;
    if (!waited) began = clock_.now();
    waited = true;
    const Nanoseconds since = clock_.now();
    trace::WaitView view;
    const bool there = window_.wait(awaited, look_again, view);
    recorder_.waiting(view, since, clock_.now());
    look_again = std::min(2 * look_again, kLookAgainMax);
    if (there) continue;
    if (const Nanoseconds so_far = clock_.now() - began; watch.is_due(so_far)) report_stall(so_far);
  }
  record_wait();
  return Outcome::there;
}

void Consumer::report_stall(Nanoseconds waited) const {
  const StallReport found = window_.inspect([&](const auto& steps, const auto& tasks) {
    StallFacts facts{settings_.dataset, start_.pass, window_.delivered(), waited, steps.size()};
    for (const auto& step : steps) facts.ready += step->ready() ? 1 : 0;
    return stall_report(facts, tasks, *plan_, clock_.now());
  });
  // Without the lock: reading the stacks of an interpreter takes a while.
  if (settings_.stall_is_error)
    throw ResourceError(found.text(), {}, "fix the stuck function, or raise stall_after");
  report(found.text());
}

bool Consumer::has_next() {
  if (!ready_.empty()) return true;
  if (!stream_) return window_.delivered() < end_;
  return await(Window::Awaited::step) == Outcome::there;
}

std::optional<bool> Consumer::has_next_within(Nanoseconds patience) {
  if (!ready_.empty() || !stream_) return has_next();
  const Outcome outcome = await(Window::Awaited::step, clock_.now() + patience);
  if (outcome == Outcome::late) return std::nullopt;
  return outcome == Outcome::there;
}

StreamPlace Consumer::stream_place() const {
  StreamPlace place = reached_;
  place.batch = batch_samples_of(*plan_);
  const auto note_next = [&](const auto& steps) {
    const PulledRows* const next = steps.empty() ? nullptr : steps.front()->pulled();
    if (next != nullptr && next->rows.rows > 0) place.next = row_digest(next->rows, 0);
  };
  if (!ready_.empty()) {
    note_next(ready_);
  } else {
    window_.inspect([&](const auto& steps, const auto&) { note_next(steps); });
  }
  return place;
}

void Consumer::write_ledger(std::uint64_t step, const std::vector<Failure>& failures) {
  if (settings_.ledger == nullptr || failures.empty()) return;
  recorder_.skipped(failures.size());
  std::vector<LedgerEntry> entries;
  for (const Failure& failure : failures) {
    LedgerEntry entry;
    entry.epoch = start_.pass;
    entry.step = step;
    entry.sample = failure.where.sample.value_or(SampleKey{});
    entry.op = failure.where.op;
    entry.reason = failure.message;
    entry.file = failure.where.file;
    entries.push_back(std::move(entry));
  }
  // Threads finish in any order; sorting keeps the ledger deterministic.
  std::ranges::sort(entries, {}, [](const LedgerEntry& entry) {
    return std::pair(entry.sample.source, entry.sample.number);
  });
  settings_.ledger->add(entries);
}

void Consumer::raise(Failure failure, const StepInFlight& step) const {
  // A row cancelled by a stop is not a failure, even if the stop came between two steps and this
  // run is a new one.
  if (stopped() || failure.cancelled())
    throw CancelledError("the loader was stopped while waiting for a batch");
  failure.where.dataset = settings_.dataset;
  failure.where.epoch = start_.pass;
  failure.where.step = step.number();
  failure.where.position =
      stream_ ? step.pulled()->position : start_.geometry.position(step.number());
  failure.raise();
}

std::optional<StepBatches> Consumer::next() {
  if (!requested_) recorder_.requested(clock_.now());
  requested_ = true;
  if (window_.delivered() >= end_) {
    recorder_.ended();
    return std::nullopt;
  }
  if (ready_.empty()) {
    if (await(Window::Awaited::ready_step) != Outcome::there) {
      recorder_.ended();
      return std::nullopt;
    }
    window_.take_ready(ready_, spent_);
  }
  return deliver_first();
}

std::optional<StepBatches> Consumer::next_if_ready() {
  // Without the window's lock: a thread that plans reads may hold it for a while.
  if (ready_.empty() || stopped_ || settings_.ledger != nullptr || ready_.front()->has_failed())
    return std::nullopt;
  return deliver_first();
}

StepBatches Consumer::deliver_first() {
  spent_.push_back(std::move(ready_.front()));
  ready_.pop_front();
  StepInFlight& step = *spent_.back();
  const std::uint64_t bytes = step.bytes.bytes();
  step.bytes.resize(0);
  window_.count_delivered();
  if (auto failure = step.take_failure()) raise(std::move(*failure), step);
  if (settings_.ledger != nullptr) write_ledger(step.number(), step.failures.take());
  if (PulledRows* const pulled = step.pulled())
    reached_ = {std::move(pulled->after), pulled->position + step.place().count, {}, 0};
  recorder_.delivered({step.number(), step.rows_here(), count_of(clock_.now()),
                       window_.in_flight() + 1, window_.size(), bytes,
                       ByteBudget::process().used() + bytes});
  return step.take_batches();
}

}  // namespace penstock
