// The part of a pass that pulls a stream, and that learns from a first sample what only running
// shows.
// tested in src/feed/stream_test.cc
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "order/cut.h"
#include "run/compute.h"
#include "run/flying.h"
#include "sample/rows.h"

namespace penstock {

Scratch& thread_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

bool PassRun::may_pull() const {
  return stream_ && !alone_ && !ended_ && in_flight() < window_.load(std::memory_order_relaxed) &&
         (in_flight() == 0 || ByteBudget::process().has(step_bytes_));
}

std::uint64_t PassRun::pull_steps(Task& task) {
  constexpr Nanoseconds kLongEnough = std::chrono::microseconds(100);
  std::uint64_t rows = 0;
  while (true) {
    std::unique_ptr<Flying> flying;
    std::uint64_t step = 0;
    {
      Lock lock(mutex_);
      if (stopped_) return rows;
      flying = spare_flying();
      step = opened_.load(std::memory_order_relaxed);
      task.first_step = step;
    }
    const bool more = pull_step(*flying, step);
    Lock lock(mutex_);
    if (!more) {
      ended_ = true;
      left_over_ = flying->failures.take();
      return rows;
    }
    rows += flying->rows_here;
    {
      Lock inner(flying->mutex);
      ended_ = flying->failure.has_value();  // what threw cannot be pulled on
    }
    flying_.push_back(std::move(flying));
    opened_.store(step + 1, std::memory_order_relaxed);
    alone_ = false;
    const bool enough = clock_.now() - task.began >= kLongEnough || settings_.threads == 0;
    if (enough || !may_pull()) return rows;
    alone_ = true;
  }
}

/// False at the end.
bool PassRun::pull_step(Flying& flying, std::uint64_t step) {
  Pulling pulling{thread_scratch(), settings_.ledger != nullptr ? &flying.failures : nullptr,
                  settings_.threads > 1 ? &gang_ : nullptr};
  flying.position = pulled_position_;
  flying.bytes = 0;
  auto more = sequencer_.pull(flying.pulled, flying.after, pulling);
  if (more && !*more) return false;
  if (!more) {
    // The step is delivered as its failure.
    flying.step = step;
    flying.place = {};
    flying.shares.clear();
    flying.rows_here = 0;
    flying.pulled_rows = {};
    Lock lock(flying.mutex);
    flying.failure = std::move(more.failure());
    flying.ready = true;
    return true;
  }
  flying.pulled_rows = flying.pulled.buffer->rows(0, flying.pulled.rows);
  flying.place = {flying.pulled.leaf, {flying.pulled.pass, 0}, 0, flying.pulled.rows};
  pulled_position_ += flying.pulled.rows;
  bool molded = false;
  {
    Lock lock(mutex_);
    molded = molded_;
  }
  if (!molded) molded = learn_from(step, flying.place, &flying.pulled_rows);
  // Where no row of a step can be made there are no fields; the next step does not look again,
  // since the batches of a run have one mold.
  if (!molded) set_mold(make_mold(ElementSpec::none(), settings_.mold));
  ByteBudget::process().take(step_bytes_, true);
  try {
    fill(flying, step);
  } catch (...) {
    ByteBudget::process().give_back(step_bytes_);
    throw;
  }
  begin_flight(flying);
  return true;
}

void PassRun::learn() {
  for (std::uint64_t step = start_.step; step < end_; ++step)
    if (learn_from(step, start_.geometry.step(start_.pass, step), nullptr)) return;
  // Where no row is left for us in this epoch the batches have no fields, and the next epoch looks
  // again.
  set_mold(make_mold(ElementSpec::none(), settings_.mold));
}

/// Tries the rows of our shares in order.
bool PassRun::learn_from(std::uint64_t step, const Place& place, const BlockView* pulled) {
  if (plan_->program.spec.known) {
    set_mold(make_mold(plan_->program.spec, settings_.mold));
    return true;
  }
  const Shares& shares = plan_->options.shares;
  const Cut cut{place.count, shares.total};
  for (std::uint32_t share = shares.first; share < shares.first + shares.count; ++share)
    for (std::uint64_t row = 0; row < cut.size(share); ++row)
      if (learn_row(step, place, cut.first(share) + row, pulled)) return true;
  // A stream is pulled by all alike, so another's row tells as well.
  return pulled != nullptr && learn_row(step, place, 0, pulled);
}

bool PassRun::learn_row(std::uint64_t step, const Place& place, std::uint64_t row,
                        const BlockView* pulled) {
  Scratch& scratch = thread_scratch();
  const Scratch::Frame frame(scratch);
  const ScratchBlock block(ElementSpec::unknown(), 1, scratch);
  auto done = compute_rows(plan_->program, place, row, block.view(), scratch, pulled);
  if (!done) {
    // Where such a sample is left out the next one tells as well.
    if (settings_.ledger != nullptr && !done.failure().may_pass) return false;
    Failure failure = std::move(done.failure());
    failure.where.dataset = settings_.dataset;
    failure.where.epoch = start_.pass;
    failure.where.step = step;
    failure.raise();
  }
  kept_ = KeptSample{step, row, block.view().identity.sample_id[0], block.view().samples[0]};
  set_mold(make_mold(ElementSpec::of(kept_->sample), settings_.mold));
  return true;
}

}  // namespace penstock
