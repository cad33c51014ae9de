#include "run/step_in_flight.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "order/cut.h"

namespace penstock {

PulledRows* StepInFlight::pulled() const {
  const auto* const pulled = std::get_if<std::unique_ptr<PulledRows>>(&rows_);
  return pulled != nullptr ? pulled->get() : nullptr;
}

AskedRows* StepInFlight::asked() const {
  const auto* const asked = std::get_if<std::unique_ptr<AskedRows>>(&rows_);
  return asked != nullptr ? asked->get() : nullptr;
}

void StepInFlight::begin(std::uint64_t number, const Place& place) {
  number_ = number;
  place_ = place;
  whole_ = false;
  shares_.clear();
  rows_here_ = 0;
  missing_ = 0;
  ready_ = false;
}

void StepInFlight::open(std::uint64_t number, const Place& place) {
  begin(number, place);
  rows_ = RowsByPosition{};
}

PulledRows& StepInFlight::open_pulled(std::uint64_t number, std::uint64_t position) {
  begin(number, {});
  if (pulled() == nullptr) rows_ = std::make_unique<PulledRows>();
  PulledRows& rows = *pulled();
  rows.rows = {};
  rows.position = position;
  return rows;
}

void StepInFlight::open_asked(std::uint64_t number, const Place& place) {
  begin(number, place);
  if (asked() == nullptr) rows_ = std::make_unique<AskedRows>();
  asked()->index = place.first;
  whole_ = true;
  rows_here_ = 1;  // until the number is known
  missing_ = 1;
}

void StepInFlight::cut(const BatchForm& form, const std::shared_ptr<const BatchLayout>& layout,
                       BatchRing& ring) {
  whole_ = form.whole;
  const Shares& shares = settings_.shares;
  const Cut cut = cut_of(place_, shares.total);
  const bool flags = settings_.skips || settings_.masks;
  flags_.resize(flags ? shares.count : 0);
  rows_here_ = 0;
  for (std::uint32_t share = shares.first; share < shares.first + shares.count; ++share) {
    const ShareFacts facts{settings_.pass,  number_,  share,      shares.total,
                           cut.size(share), cut.rows, cut.slots()};
    shares_.push_back({ring.acquire(layout, facts, form), cut.first(share), cut.size(share)});
    if (flags) flags_[share - shares.first].assign(facts.rows, kRowGood);
    rows_here_ += cut.size(share);
  }
}

void StepInFlight::set_learned(std::uint64_t learned) {
  for (Share& share : shares_) {
    share.learned = std::min(learned, share.rows);
    learned -= share.learned;
  }
}

void StepInFlight::await_rows() {
  missing_ = rows_here_;
  for (const Share& share : shares_) missing_ -= share.learned;
  if (missing_ > 0) return;
  complete();
  ready_ = true;
}

BlockView StepInFlight::rows_of(std::size_t share) const {
  BlockView rows = shares_[share].batch->rows();
  // Each thread writes only the flags of its own rows.
  if (!flags_.empty()) rows.identity.failed = const_cast<std::uint8_t*>(flags_[share].data());
  if (settings_.skips) rows.identity.failures = &failures;
  return rows;
}

void StepInFlight::fail(Failure failure) {
  Lock lock(mutex_);
  if (!failure_ || failure.row < failure_->row) failure_ = std::move(failure);
}

bool StepInFlight::has_failed() const {
  Lock lock(mutex_);
  return failure_.has_value();
}

std::uint64_t StepInFlight::complete() {
  std::uint64_t taken = 0;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    BatchData& batch = *shares_[i].batch;
    if (!flags_.empty()) batch.drop_rows(flags_[i], settings_.no_empty_share);
    if (auto done = batch.gather(); !done) {
      done.failure().row += shares_[i].first_row;
      done.failure().message += fmt::format(" (row {} of the step)", done.failure().row);
      fail(std::move(done.failure()));
    }
    taken += batch.bytes();
  }
  bytes.resize(taken);
  return taken;
}

std::optional<Failure> StepInFlight::take_failure() {
  Lock lock(mutex_);
  return std::exchange(failure_, std::nullopt);  // the object is reused for another step
}

/// A field whose sizes differed in an earlier batch, or in another share, is ragged in this one
/// too.
void StepInFlight::open_sizes() {
  if (shares_.empty() || !shares_.front().batch->layout().open) return;
  OpenSizes& open = *shares_.front().batch->layout().open;
  for (const Share& share : shares_)
    if (&share.batch->spec() != &share.batch->layout().spec) open.add(share.batch->spec());
  const auto spec = open.spec();
  if (!spec) return;
  for (const Share& share : shares_) share.batch->open(spec);
}

StepBatches StepInFlight::take_batches() {
  open_sizes();
  StepBatches batches;
  batches.reserve(shares_.size());
  for (auto& share : shares_) batches.emplace_back(std::move(share.batch));
  return batches;
}

}  // namespace penstock
