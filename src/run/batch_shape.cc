#include "run/batch_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/report.h"
#include "order/cut.h"
#include "run/compute.h"
#include "sample/rows.h"
#include "verb/batch.h"

namespace penstock {
namespace {

/// How many learned rows and steps are stored so that no function is called twice for them. If the
/// data starts with more failing samples than this, the rest is computed again.
constexpr std::size_t kRowsMax = 1024;
constexpr std::size_t kStepsMax = 16;
/// Endless data whose samples all fail, or are all masked, would be searched forever.
constexpr std::uint64_t kSearchedMax = 100'000;

void warn_if_batch(const ElementSpec& spec) {
  if (const auto warning = batch_of_batches(spec)) report(*warning);
}

}  // namespace

BatchShape make_batch_shape(ElementSpec spec, const ShapeLimits& limits,
                            std::shared_ptr<OpenSizes> learned) {
  constexpr std::size_t kSpareMin = 64ULL << 20;
  BatchShape shape;
  shape.layout =
      std::make_shared<BatchLayout>(std::move(spec), limits.rows_max, std::move(learned));
  shape.ring =
      std::make_shared<BatchRing>(limits.allocator ? limits.allocator : Allocator::heap(),
                                  std::max(kSpareMin, 4 * shape.layout->bytes * limits.shares));
  return shape;
}

struct ShapeLearner::LearnedStep {
  explicit LearnedStep(std::size_t rows)
      : samples(rows), ids(rows), occurrence(rows), failed(rows, kRowGood) {}
  std::vector<Sample> samples;
  std::vector<std::uint64_t> ids;
  std::vector<std::uint64_t> occurrence;
  std::vector<std::uint8_t> failed;
  RowFailures failures;
};

void ShapeLearner::raise_at(Failure failure, std::uint64_t step) const {
  failure.where.dataset = settings_.dataset;
  failure.where.epoch = settings_.pass;
  failure.where.step = step;
  failure.raise();
}

void ShapeLearner::count_searched(std::uint64_t rows, std::uint64_t step) {
  searched_ += rows;
  if (searched_ <= kSearchedMax) return;
  const std::string why = last_failure_.empty() ? "they are masked" : "the last: " + last_failure_;
  raise_at({fmt::format("the fields of a batch are not known: none of the first {} samples could "
                        "be computed; {}",
                        kSearchedMax, why),
            {},
            "repair the data or the function; or declare spec= where the fields are made"},
           step);
}

/// True if the failure is to be thrown in its turn, after the steps before it are delivered: that
/// step is then computed again.
bool ShapeLearner::fails_later(const Failure& failure, std::uint64_t step) {
  if (settings_.skips || failure.must_raise() || step == first_step_) return false;
  later_failure_ = true;
  return true;
}

/// Requests the batch if the step is one of a Sequence.
const BlockView* ShapeLearner::rows_to_learn_from(std::uint64_t step, Place& place,
                                                  const Context& context) {
  if (!plan_->program.chains[place.leaf].sequence) return nullptr;
  const BlockView* rows = nullptr;
  {
    Lock lock(mutex_);
    if (const auto found = batches_.find(step); found != batches_.end()) rows = &found->second.view;
  }
  if (rows == nullptr) {
    SequenceBatch batch;
    if (auto done = ask_sequence(plan_->program, place, step, batch, context); !done)
      raise_at(std::move(done.failure()), step);
    // The batch is stored until it is delivered, so that no index is requested twice.
    Lock lock(mutex_);
    rows = &(batches_[step] = std::move(batch)).view;
  }
  place.first = 0;
  place.count = rows->rows;
  return rows;
}

BatchShape ShapeLearner::learn(const Geometry& geometry, std::uint64_t first, std::uint64_t end,
                               const Context& context) {
  first_step_ = first;
  later_failure_ = false;
  for (std::uint64_t step = first; step < end && !later_failure_; ++step) {
    Place place = geometry.step(settings_.pass, step);
    const BlockView* const given = rows_to_learn_from(step, place, context);
    if (auto shape = learn_from(step, place, given, context)) return std::move(*shape);
  }
  // This process has no more samples in this epoch, or the next one fails. Every share has the same
  // fields, so a row of another share will do.
  constexpr std::uint64_t kTriesMax = 64;
  std::uint64_t tries = kTriesMax;
  for (std::uint64_t step = first; step < end && tries > 0; ++step) {
    Place place = geometry.step(settings_.pass, step);
    const BlockView* const given = rows_to_learn_from(step, place, context);
    if (auto shape = learn_from_others(step, place, given, tries, context))
      return std::move(*shape);
  }
  if (auto shape = learn_from_past(geometry, first, kTriesMax, context)) return std::move(*shape);
  return without_fields();
}

/// After a resume: tries the steps before `first`, for example if all rows that are left are
/// masked.
std::optional<BatchShape> ShapeLearner::learn_from_past(const Geometry& geometry,
                                                        std::uint64_t first, std::uint64_t tries,
                                                        const Context& context) {
  for (std::uint64_t step = geometry.first_known(); step < first && tries > 0; ++step) {
    const Place place = geometry.step(settings_.pass, step);
    // A Sequence is not asked for a batch again.
    if (plan_->program.chains[place.leaf].sequence || is_whole(plan_->program, place)) continue;
    for (std::uint64_t row = 0; row < place.count && tries > 0; ++row, --tries)
      if (auto shape = learn_row(step, place, row, nullptr, Owner::another, context)) return shape;
  }
  return std::nullopt;
}

std::optional<BatchShape> ShapeLearner::learn_from_stream(const StepInFlight& step,
                                                          const Context& context) {
  first_step_ = step.number();
  const BlockView* const given = given_rows(step);
  if (auto shape = learn_from(step.number(), step.place(), given, context)) return shape;
  // Every process pulls the whole stream, so a row of another share will do.
  std::uint64_t tries = step.place().count;
  return learn_from_others(step.number(), step.place(), given, tries, context);
}

BatchShape ShapeLearner::without_fields() const {
  return make_batch_shape(ElementSpec::none(), settings_.limits);
}

/// Tries the rows of the local shares in order.
std::optional<BatchShape> ShapeLearner::learn_from(std::uint64_t step, const Place& place,
                                                   const BlockView* given, const Context& context) {
  if (plan_->program.spec.known) return make_batch_shape(plan_->program.spec, settings_.limits);
  if (is_whole(plan_->program, place)) return learn_step(step, place, given, context);
  const Shares& shares = plan_->options.shares;
  const Cut cut{place.count, shares.total};
  for (std::uint32_t share = shares.first; share < shares.first + shares.count; ++share)
    for (std::uint64_t row = 0; row < cut.size(share) && !later_failure_; ++row)
      if (auto shape = learn_row(step, place, cut.first(share) + row, given, Owner::us, context))
        return shape;
  return std::nullopt;
}

/// Tries the rows of all other shares, up to `tries`.
std::optional<BatchShape> ShapeLearner::learn_from_others(std::uint64_t step, const Place& place,
                                                          const BlockView* given,
                                                          std::uint64_t& tries,
                                                          const Context& context) {
  if (is_whole(plan_->program, place)) return std::nullopt;  // already tried as a whole
  const Shares& shares = plan_->options.shares;
  const Cut cut{place.count, shares.total};
  const std::uint64_t ours = cut.first(shares.first);
  const std::uint32_t last = shares.first + shares.count - 1;
  const std::uint64_t ours_end = cut.first(last) + cut.size(last);
  for (std::uint64_t row = 0; row < place.count && tries > 0; ++row) {
    if (row >= ours && row < ours_end) continue;
    --tries;
    if (auto shape = learn_row(step, place, row, given, Owner::another, context)) return shape;
  }
  return std::nullopt;
}

void ShapeLearner::keep(std::uint64_t step, LearnedRow row) {
  if (row_count_ >= kRowsMax) return;
  rows_[step].push_back(std::move(row));
  ++row_count_;
}

std::optional<BatchShape> ShapeLearner::learn_row(std::uint64_t step, const Place& place,
                                                  std::uint64_t row, const BlockView* given,
                                                  Owner owner, const Context& context) {
  count_searched(1, step);
  const Scratch::Frame frame(context.scratch);
  const ScratchBlock row_block(ElementSpec::unknown(), 1, context.scratch);
  BlockView block = row_block.view();
  LearnedRow learned;
  block.identity.failed = &learned.flag;
  auto done = compute_rows(plan_->program, place, row, block, context, given);
  learned.sample_id = block.identity.sample_id[0];
  if (!done) {
    if (context.cancelled()) raise_at(std::move(done.failure()), step);
    last_failure_ = done.failure().message;
    // A failed sample of another process is handled there; try the next one.
    if (owner == Owner::another) return std::nullopt;
    if (fails_later(done.failure(), step)) return std::nullopt;
    if (!settings_.skips || done.failure().must_raise()) raise_at(std::move(done.failure()), step);
    learned.flag = kRowFailed;
    learned.failure = std::move(done.failure());
    keep(step, std::move(learned));
    return std::nullopt;
  }
  learned.sample = block.samples[0];
  // A masked row also shows the fields, if it was computed.
  const bool tells = learned.flag == kRowGood || !learned.sample.leaves().empty();
  const ElementSpec spec = tells ? ElementSpec::of(learned.sample) : ElementSpec::none();
  if (owner == Owner::us) keep(step, std::move(learned));
  if (!tells) return std::nullopt;
  if (plan_->program.stream != nullptr) warn_if_batch(spec);
  return make_batch_shape(spec, settings_.limits, std::make_shared<OpenSizes>());
}

std::optional<BatchShape> ShapeLearner::learn_step(std::uint64_t step, const Place& place,
                                                   const BlockView* given, const Context& context) {
  if (place.count == 0) return std::nullopt;
  count_searched(place.count, step);
  auto learned = std::make_shared<LearnedStep>(place.count);
  const ElementSpec unknown = ElementSpec::unknown();
  BlockView all;
  all.rows = place.count;
  all.spec = &unknown;
  all.samples = learned->samples.data();
  all.identity = {learned->ids.data(), learned->occurrence.data()};
  if (settings_.skips) all.identity.failures = &learned->failures;
  if (settings_.skips || plan_->program.masks) all.identity.failed = learned->failed.data();
  const Destination destination{0, &all};
  auto done = compute_step(plan_->program, place, {&destination, 1}, context, given);
  if (!done && fails_later(done.failure(), step)) return std::nullopt;
  if (!done) raise_at(std::move(done.failure()), step);
  std::optional<ElementSpec> spec;
  for (std::size_t row = 0; row < learned->samples.size() && !spec; ++row)
    if (learned->failed[row] == kRowGood) spec = ElementSpec::of(learned->samples[row]);
  if (spec || steps_.size() < kStepsMax) steps_[step] = std::move(learned);
  if (!spec) return std::nullopt;
  return make_batch_shape(std::move(*spec), settings_.limits, std::make_shared<OpenSizes>());
}

std::uint64_t ShapeLearner::write_rows(StepInFlight& step) const {
  const auto found = rows_.find(step.number());
  if (found == rows_.end() || step.whole()) return 0;
  const std::vector<LearnedRow>& learned = found->second;
  std::size_t next = 0;
  for (std::size_t i = 0; i < step.shares().size(); ++i) {
    const BlockView rows = step.rows_of(i);
    for (std::size_t row = 0; row < rows.rows && next < learned.size(); ++row, ++next) {
      const LearnedRow& from = learned[next];
      if (!from.sample.leaves().empty() && write_row(rows, row, from.sample)) return next;
      rows.identity.sample_id[row] = from.sample_id;
      if (rows.identity.failed != nullptr) rows.identity.failed[row] = from.flag;
      if (from.failure) step.failures.add(*from.failure, nullptr);
    }
  }
  return next;
}

bool ShapeLearner::write_step(StepInFlight& step) {
  const auto found = steps_.find(step.number());
  if (found == steps_.end()) return false;
  LearnedStep& learned = *found->second;
  for (std::size_t i = 0; i < step.shares().size(); ++i) {
    const BlockView rows = step.rows_of(i);
    for (std::size_t row = 0; row < rows.rows; ++row) {
      const std::size_t from = step.shares()[i].first_row + row;
      if (rows.identity.failed != nullptr) rows.identity.failed[row] = learned.failed[from];
      if (learned.failed[from] != kRowGood) continue;
      rows.identity.sample_id[row] = learned.ids[from];
      PENSTOCK_CHECK(!write_row(rows, row, learned.samples[from]));
    }
  }
  for (Failure& failure : learned.failures.take()) step.failures.add(std::move(failure), nullptr);
  learned.samples.clear();
  return true;
}

std::optional<SequenceBatch> ShapeLearner::take_batch(std::uint64_t step) {
  Lock lock(mutex_);
  const auto found = batches_.find(step);
  if (found == batches_.end()) return std::nullopt;
  std::optional<SequenceBatch> batch = std::move(found->second);
  batches_.erase(found);
  return batch;
}

}  // namespace penstock
