// The part of a pass that pulls a stream, and that learns from a first sample what only running
// shows.
// tested in src/feed/stream_test.cc
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/report.h"
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
                  settings_.threads > 1 ? &gang_ : nullptr};
  flying.step = pulled_step_;
  Flying::Given& given = flying.make_given();
  flying.position = pulled_position_;
  flying.bytes = 0;
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
  return learn_from(flying.step, flying.place, &flying.given->rows);
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
      ByteBudget::process().take(step_bytes_, true);
      try {
        // A batch size may be "all of it": then a step has the memory of its own rows.
        const Cut cut = cut_of(flying->place, plan_->options.shares.total);
        const std::size_t needed = std::max<std::size_t>(cut.size(0), cut.slots());
        fill(*flying, flying->step,
             needed <= mold_.layout->rows_max ? mold_.layout : layout_for(needed));
      } catch (...) {
        ByteBudget::process().give_back(step_bytes_);
        throw;
      }
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

void PassRun::raise_at(Failure failure, std::uint64_t step) const {
  failure.where.dataset = settings_.dataset;
  failure.where.epoch = start_.pass;
  failure.where.step = step;
  failure.raise();
}

void PassRun::learn() {
  for (std::uint64_t step = start_.step; step < end_; ++step) {
    Place place = start_.geometry.step(start_.pass, step);
    const BlockView* pulled = nullptr;
    if (plan_->program.chains[place.leaf].sequence) {
      // What was asked for is kept: no index is asked for twice.
      SequenceBatch& batch = kept_batches_[step];
      if (auto done = ask(place, step, batch); !done) raise_at(std::move(done.failure()), step);
      pulled = &batch.view;
      place.first = 0;
      place.count = batch.view.rows;
    }
    if (learn_from(step, place, pulled)) return;
  }
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
  if (is_whole(plan_->program, place)) return learn_step(step, place, pulled);
  const Shares& shares = plan_->options.shares;
  const Cut cut{place.count, shares.total};
  for (std::uint32_t share = shares.first; share < shares.first + shares.count; ++share)
    for (std::uint64_t row = 0; row < cut.size(share); ++row)
      if (learn_row(step, place, cut.first(share) + row, pulled)) return true;
  // A stream is pulled by all alike, so another's row tells as well.
  return pulled != nullptr && place.count > 0 && learn_row(step, place, 0, pulled);
}

namespace {

void warn_if_batch(const ElementSpec& spec) {
  if (const auto warning = batch_of_batches(spec)) report(*warning);
}

}  // namespace

bool PassRun::learn_row(std::uint64_t step, const Place& place, std::uint64_t row,
                        const BlockView* pulled) {
  Scratch& scratch = thread_scratch();
  const Scratch::Frame frame(scratch);
  const ScratchBlock row_block(ElementSpec::unknown(), 1, scratch);
  BlockView block = row_block.view();
  std::uint8_t flag = kRowGood;
  block.identity.failed = &flag;
  auto done = compute_rows(plan_->program, place, row, block, scratch, pulled);
  // A masked row tells as well as any other, where it was made.
  if (done && flag == kRowMasked && block.samples[0].leaves().empty()) return false;
  if (!done) {
    // Where such a sample is left out the next one tells as well.
    if (settings_.ledger != nullptr && !done.failure().may_pass) return false;
    raise_at(std::move(done.failure()), step);
  }
  const Sample& sample = block.samples[0];
  if (stream_) warn_if_batch(ElementSpec::of(sample));
  // Where a mask may leave it out it must be looked at again.
  if (!plan_->program.masks) kept_ = KeptSample{step, row, block.identity.sample_id[0], sample};
  set_mold(make_mold(ElementSpec::of(sample), settings_.mold));
  return true;
}

bool PassRun::learn_step(std::uint64_t step, const Place& place, const BlockView* pulled) {
  if (place.count == 0) return false;
  Scratch& scratch = thread_scratch();
  auto kept = std::make_unique<KeptStep>(step, place.count);
  const ElementSpec unknown = ElementSpec::unknown();
  BlockView all;
  all.rows = place.count;
  all.spec = &unknown;
  all.samples = kept->samples.data();
  all.identity = {kept->ids.data(), kept->occurrence.data()};
  if (settings_.ledger != nullptr) all.identity.failures = &kept_failures_;
  if (settings_.ledger != nullptr || plan_->program.masks)
    all.identity.failed = kept->failed.data();
  const Destination destination{0, &all};
  auto done = compute_step(plan_->program, place, {&destination, 1}, scratch, pulled);
  if (!done) raise_at(std::move(done.failure()), step);
  for (std::size_t row = 0; row < kept->samples.size(); ++row) {
    if (kept->failed[row] != kRowGood) continue;
    const ElementSpec spec = ElementSpec::of(kept->samples[row]);
    kept_step_ = std::move(kept);
    set_mold(make_mold(spec, settings_.mold));
    return true;
  }
  // No row of it could be made; it will be tried again when it is due, and told of then.
  static_cast<void>(kept_failures_.take());
  return false;
}

bool PassRun::write_kept_step(Flying& flying) {
  if (!kept_step_ || kept_step_->step != flying.step) return false;
  for (std::size_t i = 0; i < flying.shares.size(); ++i) {
    const BlockView rows = rows_of(flying, i);
    for (std::size_t row = 0; row < rows.rows; ++row) {
      const std::size_t from = flying.first_row[i] + row;
      if (rows.identity.failed != nullptr) rows.identity.failed[row] = kept_step_->failed[from];
      if (kept_step_->failed[from] != kRowGood) continue;
      rows.identity.sample_id[row] = kept_step_->ids[from];
      PENSTOCK_CHECK(!write_row(rows, row, kept_step_->samples[from]));
    }
  }
  for (Failure& failure : kept_failures_.take()) flying.failures.add(std::move(failure), nullptr);
  kept_step_->samples.clear();
  return true;
}

}  // namespace penstock
