// The part of a pass that pulls a stream.
// tested in src/feed/stream_test.cc
#include <algorithm>
#include <utility>

#include "order/cut.h"
#include "run/compute.h"
#include "run/flying.h"

namespace penstock {

Scratch& thread_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

bool PassRun::may_pull() const {
  return stream_ && !ended_ && in_flight() < window_.load(std::memory_order_relaxed) &&
         (in_flight() == 0 || ByteBudget::process().has(step_bytes_));
}

std::uint64_t PassRun::pull_steps(Task& task) {
  constexpr Nanoseconds kLongEnough = std::chrono::microseconds(100);
  std::uint64_t rows = 0;
  while (true) {
    std::unique_ptr<Flying> flying;
    {
      Lock lock(mutex_);
      if (stopped_) return rows;
      flying = spare_flying();
      task.first_step = pulled_step_;
    }
    if (!pull_step(*flying)) {
      rows += publish_waiting();
      Lock lock(mutex_);
      ended_ = true;
      left_over_ = flying->failures.take();
      return rows;
    }
    const bool failed = flying->ready;  // what threw cannot be pulled on
    waiting_.push_back(std::move(flying));
    if (failed || learned(*waiting_.back())) rows += publish_waiting();
    Lock lock(mutex_);
    ended_ = failed;
    // Who sleeps may be needed at once: the next element may take as long as it likes.
    if (consumer_waits_) wake_if_starved();
    // One thread has nobody else to compute what it pulled.
    const bool enough = clock_.now() - task.began >= kLongEnough || settings_.threads < 2;
    if (enough || !may_pull()) return rows;
  }
}

/// Pulls the next step; false at the end. A step that cannot be pulled is delivered as its failure.
bool PassRun::pull_step(Flying& flying) {
  Pulling pulling{thread_scratch(), settings_.ledger != nullptr ? &flying.failures : nullptr,
                  settings_.threads > 1 ? &gang_ : nullptr, &clock_};
  flying.step = pulled_step_;
  Flying::Given& given = flying.make_given();
  flying.position = pulled_position_;
  flying.place = {};
  flying.shares.clear();
  flying.rows_here = 0;
  given.rows = {};
  flying.ready = false;
  auto more = sequencer_.pull(given.pulled, given.after, pulling);
  if (more && !*more) return false;
  ++pulled_step_;
  if (!more) {
    Lock lock(flying.mutex);
    flying.failure = std::move(more.failure());
    flying.ready = true;
    return true;
  }
  given.rows = given.pulled.buffer->rows(0, given.pulled.rows);
  flying.place = place_of(given.pulled);
  pulled_position_ += given.pulled.rows;
  return true;
}

/// True when the shape of the batches is known, after a look at this step if need be.
bool PassRun::learned(const Flying& flying) {
  {
    Lock lock(mutex_);
    if (molded_) return true;
  }
  if (learn_from(flying.step, flying.place, &flying.given->rows)) return true;
  // A stream is pulled by all alike, so another's row of the step tells as well.
  std::uint64_t tries = flying.place.count;
  return learn_from_others(flying.step, flying.place, &flying.given->rows, tries);
}

/// Gives the steps that were pulled to all threads.
std::uint64_t PassRun::publish_waiting() {
  bool molded = false;
  {
    Lock lock(mutex_);
    molded = molded_;
  }
  // Where no sample of the whole pass could be made the batches have no fields.
  if (!molded) set_mold(make_mold(ElementSpec::none(), settings_.mold));
  std::uint64_t rows = 0;
  for (auto& flying : waiting_) {
    if (!flying->ready) {
      flying->bytes.take(ByteBudget::process(), step_bytes_, true);
      // A batch size may be "all of it": then a step has the memory of its own rows.
      const Cut cut = cut_of(flying->place, plan_->options.shares.total);
      const std::size_t needed = std::max<std::size_t>(cut.size(0), cut.slots());
      fill(*flying, flying->step,
           needed <= mold_.layout->rows_max ? mold_.layout : layout_for(needed));
      begin_flight(*flying);
      rows += flying->rows_here;
    }
    Lock lock(mutex_);
    flying_.push_back(std::move(flying));
    opened_.fetch_add(1, std::memory_order_relaxed);
  }
  waiting_.clear();
  return rows;
}

}  // namespace penstock
