// The consumer's side of a pass: waiting for the next step, taking it, and writing down what failed
// in it.
// tested in src/run/pass_run_test.cc
#include <algorithm>
#include <utility>

#include "plan/failures.h"
#include "run/flying.h"
#include "trace/trace.h"

namespace penstock {

void PassRun::look_up(Nanoseconds& looked) {
  constexpr Nanoseconds kPause = std::chrono::milliseconds(50);
  if (!settings_.while_waiting || clock_.now() - looked < kPause) return;
  looked = clock_.now();
  settings_.while_waiting();
}

template <typename Known>
bool PassRun::is_known(Known known) const {
  Lock lock(mutex_);
  return known() || (ended_ && flying_.empty());
}

template <typename Known>
bool PassRun::await(Known known) {
  constexpr Nanoseconds kLookAgainMax = std::chrono::milliseconds(50);
  Nanoseconds look_again = std::chrono::microseconds(200);
  Nanoseconds report_after = settings_.stall_after;
  bool waited = false;
  Nanoseconds began{0};
  Nanoseconds looked = settings_.while_waiting ? clock_.now() : Nanoseconds{0};
  // A loader inside a function of another one: the threads that could work for us may all be
  // waiting as we do, so we work ourselves.
  const bool works = settings_.threads == 0 || Pool::on_own_thread();
  while (true) {
    look_up(looked);
    if (!trace::still_wanted())
      throw CancelledError("the function that awaited a batch is not wanted any more");
    const bool worked = works && !is_known(known) && run_one();
    {
      Lock lock(mutex_);
      if (stopped_) throw CancelledError("the loader was stopped while a batch was awaited");
      if (broken_) std::rethrow_exception(broken_);
      if (ended_ && flying_.empty()) return false;
      if (known()) break;
      if (settings_.threads == 0 || worked) continue;
      if (!waited) began = clock_.now();
      waited = true;
      // Threads that are idle while we wait say that the window was too small; busy ones don't.
      if (starved_.load() && tasks_.size() < settings_.threads) {
        pacing_.consumer_waited();
        window_.store(pacing_.window(), std::memory_order_relaxed);
      }
      // A task tells us at its end, which saves a wake-up for each small step; but a step that is
      // complete must not wait for the slow sample that came after it, so we look ourselves too.
      if (stream_) wake_if_starved();
      consumer_waits_ = true;
      head_ready_.wait_for(mutex_, look_again);
      consumer_waits_ = false;
      look_again = std::min(2 * look_again, kLookAgainMax);
      if (known() || (ended_ && flying_.empty())) continue;
    }
    watch(began, report_after);
  }
  if (waited)
    trace::record({trace::Kind::waited, trace_run_, 0, delivered_.load(), count_of(began),
                   count_of(clock_.now())});
  return true;
}

bool PassRun::await_head() {
  const bool more = await(
      [this]() PENSTOCK_REQUIRES(mutex_) { return !flying_.empty() && flying_.front()->ready; });
  if (!more) return false;
  Lock lock(mutex_);
  for (auto& spent : spent_) spare_.push_back(std::move(spent));
  spent_.clear();
  while (!flying_.empty() && flying_.front()->ready) {
    handed_.push_back(std::move(flying_.front()));
    flying_.pop_front();
    if (claim_step_ > 0) {
      --claim_step_;
    } else {
      claim_share_ = 0;
      claim_row_ = 0;
    }
  }
  return true;
}

bool PassRun::has_next() {
  if (!handed_.empty()) return true;
  if (!stream_) return delivered_.load() < end_;
  return await([this]() PENSTOCK_REQUIRES(mutex_) { return !flying_.empty(); });
}

std::optional<bool> PassRun::has_next_within(Nanoseconds patience) {
  if (!handed_.empty() || !stream_) return has_next();
  const Nanoseconds until = clock_.now() + patience;
  bool late = false;
  const bool more = await([&]() PENSTOCK_REQUIRES(mutex_) {
    late = flying_.empty() && clock_.now() >= until;
    return late || !flying_.empty();
  });
  if (!more) return false;
  return late ? std::nullopt : std::optional(true);
}

StreamPlace PassRun::stream_place() {
  StreamPlace place = reached_;
  const Flying* next = handed_.empty() ? nullptr : handed_.front().get();
  if (next == nullptr) {
    Lock lock(mutex_);
    if (!flying_.empty()) next = flying_.front().get();
  }
  place.batch = batch_samples_of(*plan_);
  const Flying::Given* const given = next != nullptr ? next->given.get() : nullptr;
  if (given != nullptr && given->rows.rows > 0) place.next = row_digest(given->rows, 0);
  return place;
}

void PassRun::write_ledger(std::uint64_t step, const std::vector<Failure>& failures) {
  if (failures.empty()) return;
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
  // Threads are done in any order; the ledger is the same every time.
  std::ranges::sort(entries, {}, [](const LedgerEntry& entry) {
    return std::pair(entry.sample.source, entry.sample.number);
  });
  settings_.ledger->add(entries);
}

StepBatches PassRun::deliver(Flying& flying) {
  flying.bytes.resize(0);
  const std::uint64_t delivered = delivered_.fetch_add(1) + 1;
  // Wake the pool once there is room for some steps, not for each one.
  if (starved_.load() && pool_ != nullptr) {
    const std::uint64_t waiting = opened_.load(std::memory_order_relaxed) - delivered;
    const std::uint64_t window = window_.load(std::memory_order_relaxed);
    if (waiting == 0 || waiting + std::max<std::uint64_t>(1, window / 4) <= window) {
      starved_.store(false);
      pool_->wake();
    }
  }
  std::optional<Failure> failure;
  {
    Lock lock(flying.mutex);
    failure = std::exchange(flying.failure, std::nullopt);  // the memory is used for another step
  }
  if (failure) {
    // A row that was given up because of a stop is no failure of its own, even where the stop came
    // between two steps and this run is a new one.
    if (stopped() || failure->cancelled())
      throw CancelledError("the loader was stopped while a batch was awaited");
    failure->where.dataset = settings_.dataset;
    failure->where.epoch = start_.pass;
    failure->where.step = flying.step;
    failure->where.position = stream_ ? flying.position : start_.geometry.position(flying.step);
    failure->raise();
  }
  if (settings_.ledger != nullptr) write_ledger(flying.step, flying.failures.take());
  if (stream_)
    reached_ = {std::move(flying.given->after), flying.position + flying.place.count, {}, 0};
  const auto now = count_of(clock_.now());
  trace::record({trace::Kind::delivered, trace_run_, static_cast<std::uint32_t>(flying.rows_here),
                 flying.step, now, now});
  StepBatches batches;
  batches.reserve(flying.shares.size());
  for (auto& share : flying.shares) batches.emplace_back(std::move(share));
  return batches;
}

std::optional<StepBatches> PassRun::next() {
  if (delivered_.load() >= end_) return std::nullopt;
  if (handed_.empty() && !await_head()) {
    Lock lock(mutex_);
    const auto failures = std::exchange(left_over_, {});
    if (settings_.ledger != nullptr) write_ledger(delivered_.load(), failures);
    return std::nullopt;
  }
  return deliver_handed();
}

std::optional<StepBatches> PassRun::next_if_ready() {
  // Without mutex_: a thread that reads ahead may have it for a while.
  if (handed_.empty() || stop_asked_ || settings_.ledger != nullptr) return std::nullopt;
  {
    Lock lock(handed_.front()->mutex);
    if (handed_.front()->failure) return std::nullopt;
  }
  return deliver_handed();
}

StepBatches PassRun::deliver_handed() {
  spent_.push_back(std::move(handed_.front()));
  handed_.pop_front();
  return deliver(*spent_.back());
}

}  // namespace penstock
