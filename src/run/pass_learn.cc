// The part of a pass that learns the fields of a batch from a first sample.
// tested in src/feed/learn_test.cc
#include <utility>

#include "base/check.h"
#include "base/report.h"
#include "order/cut.h"
#include "run/compute.h"
#include "run/flying.h"
#include "sample/rows.h"

namespace penstock {
namespace {

/// Rows and steps that are remembered so that no function is called twice for them. Where the data
/// begins with more broken samples than this, the rest is computed again.
constexpr std::size_t kRowsMax = 1024;
constexpr std::size_t kStepsMax = 16;

void warn_if_batch(const ElementSpec& spec) {
  if (const auto warning = batch_of_batches(spec)) report(*warning);
}

}  // namespace

void PassRun::raise_at(Failure failure, std::uint64_t step) const {
  failure.where.dataset = settings_.dataset;
  failure.where.epoch = start_.pass;
  failure.where.step = step;
  failure.raise();
}

const BlockView* PassRun::rows_to_learn_from(std::uint64_t step, Place& place) {
  if (!plan_->program.chains[place.leaf].sequence) return nullptr;
  const BlockView* rows = nullptr;
  {
    Lock lock(mutex_);
    if (const auto found = learned_batches_.find(step); found != learned_batches_.end())
      rows = &found->second.view;
  }
  if (rows == nullptr) {
    SequenceBatch batch;
    if (auto done = ask(place, step, batch); !done) raise_at(std::move(done.failure()), step);
    // What was asked for stays here until it is delivered: no index is asked for twice.
    Lock lock(mutex_);
    rows = &(learned_batches_[step] = std::move(batch)).view;
  }
  place.first = 0;
  place.count = rows->rows;
  return rows;
}

void PassRun::learn() {
  for (std::uint64_t step = start_.step; step < end_; ++step) {
    Place place = start_.geometry.step(start_.pass, step);
    const BlockView* const pulled = rows_to_learn_from(step, place);
    if (learn_from(step, place, pulled)) return;
  }
  // No sample is left for us in this epoch. Every share has the same fields, so another's tells.
  constexpr std::uint64_t kTriesMax = 64;
  std::uint64_t tries = kTriesMax;
  for (std::uint64_t step = start_.step; step < end_ && tries > 0; ++step) {
    Place place = start_.geometry.step(start_.pass, step);
    const BlockView* const pulled = rows_to_learn_from(step, place);
    if (learn_from_others(step, place, pulled, tries)) return;
  }
  // Where no sample can be computed at all the batches have no fields, and the next epoch looks
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
      if (learn_row(step, place, cut.first(share) + row, pulled, Owner::us)) return true;
  return false;
}

/// Tries the rows of all other shares, as many as `tries` allows.
bool PassRun::learn_from_others(std::uint64_t step, const Place& place, const BlockView* pulled,
                                std::uint64_t& tries) {
  if (is_whole(plan_->program, place)) return false;  // looked at as a whole before
  const Shares& shares = plan_->options.shares;
  const Cut cut{place.count, shares.total};
  const std::uint64_t ours = cut.first(shares.first);
  const std::uint32_t last = shares.first + shares.count - 1;
  const std::uint64_t ours_end = cut.first(last) + cut.size(last);
  for (std::uint64_t row = 0; row < place.count && tries > 0; ++row) {
    if (row >= ours && row < ours_end) continue;
    --tries;
    if (learn_row(step, place, row, pulled, Owner::another)) return true;
  }
  return false;
}

void PassRun::note_learned(std::uint64_t step, LearnedRow row) {
  if (learned_count_ >= kRowsMax) return;
  learned_rows_[step].push_back(std::move(row));
  ++learned_count_;
}

bool PassRun::learn_row(std::uint64_t step, const Place& place, std::uint64_t row,
                        const BlockView* pulled, Owner owner) {
  Scratch& scratch = thread_scratch();
  const Scratch::Frame frame(scratch);
  const ScratchBlock row_block(ElementSpec::unknown(), 1, scratch);
  BlockView block = row_block.view();
  LearnedRow learned;
  block.identity.failed = &learned.flag;
  auto done = compute_rows(plan_->program, place, row, block, scratch, pulled);
  learned.sample_id = block.identity.sample_id[0];
  if (!done) {
    if (!trace::still_wanted()) raise_at(std::move(done.failure()), step);
    // Whose sample it is decides what becomes of a failure; the next one tells as well.
    if (owner == Owner::another) return false;
    if (settings_.ledger == nullptr || done.failure().must_raise())
      raise_at(std::move(done.failure()), step);
    learned.flag = kRowFailed;
    learned.failure = std::move(done.failure());
    note_learned(step, std::move(learned));
    return false;
  }
  learned.sample = block.samples[0];
  // A masked row tells as well as any other, where it was computed.
  const bool tells = learned.flag == kRowGood || !learned.sample.leaves().empty();
  const ElementSpec spec = tells ? ElementSpec::of(learned.sample) : ElementSpec::none();
  if (owner == Owner::us) note_learned(step, std::move(learned));
  if (!tells) return false;
  if (stream_) warn_if_batch(spec);
  set_mold(make_mold(spec, settings_.mold));
  return true;
}

bool PassRun::learn_step(std::uint64_t step, const Place& place, const BlockView* pulled) {
  if (place.count == 0) return false;
  Scratch& scratch = thread_scratch();
  auto learned = std::make_unique<LearnedStep>(place.count);
  const ElementSpec unknown = ElementSpec::unknown();
  BlockView all;
  all.rows = place.count;
  all.spec = &unknown;
  all.samples = learned->samples.data();
  all.identity = {learned->ids.data(), learned->occurrence.data()};
  if (settings_.ledger != nullptr) all.identity.failures = &learned->failures;
  if (settings_.ledger != nullptr || plan_->program.masks)
    all.identity.failed = learned->failed.data();
  const Destination destination{0, &all};
  auto done = compute_step(plan_->program, place, {&destination, 1}, scratch, pulled);
  if (!done) raise_at(std::move(done.failure()), step);
  std::optional<ElementSpec> spec;
  for (std::size_t row = 0; row < learned->samples.size() && !spec; ++row)
    if (learned->failed[row] == kRowGood) spec = ElementSpec::of(learned->samples[row]);
  if (spec || learned_steps_.size() < kStepsMax) learned_steps_[step] = std::move(learned);
  if (!spec) return false;
  set_mold(make_mold(std::move(*spec), settings_.mold));
  return true;
}

std::uint64_t PassRun::write_learned_rows(Flying& flying) {
  const auto found = learned_rows_.find(flying.step);
  if (found == learned_rows_.end() || flying.whole) return 0;
  const std::vector<LearnedRow>& learned = found->second;
  std::size_t next = 0;
  for (std::size_t i = 0; i < flying.shares.size(); ++i) {
    const BlockView rows = rows_of(flying, i);
    for (std::size_t row = 0; row < rows.rows && next < learned.size(); ++row, ++next) {
      const LearnedRow& from = learned[next];
      if (!from.sample.leaves().empty() && write_row(rows, row, from.sample)) return next;
      rows.identity.sample_id[row] = from.sample_id;
      if (rows.identity.failed != nullptr) rows.identity.failed[row] = from.flag;
      if (from.failure) flying.failures.add(*from.failure, nullptr);
    }
  }
  return next;
}

bool PassRun::write_learned_step(Flying& flying) {
  const auto found = learned_steps_.find(flying.step);
  if (found == learned_steps_.end()) return false;
  LearnedStep& learned = *found->second;
  for (std::size_t i = 0; i < flying.shares.size(); ++i) {
    const BlockView rows = rows_of(flying, i);
    for (std::size_t row = 0; row < rows.rows; ++row) {
      const std::size_t from = flying.first_row[i] + row;
      if (rows.identity.failed != nullptr) rows.identity.failed[row] = learned.failed[from];
      if (learned.failed[from] != kRowGood) continue;
      rows.identity.sample_id[row] = learned.ids[from];
      PENSTOCK_CHECK(!write_row(rows, row, learned.samples[from]));
    }
  }
  for (Failure& failure : learned.failures.take()) flying.failures.add(std::move(failure), nullptr);
  learned.samples.clear();
  return true;
}

}  // namespace penstock
