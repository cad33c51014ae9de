#include "penstock/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/fault.h"
#include "order/cut.h"
#include "plan/check.h"
#include "plan/epochs.h"
#include "plan/plan_data.h"
#include "sample/batch_data.h"

namespace penstock {
namespace {

void check_shares(const Shares& shares) {
  if (shares.total < 1) throw ConfigError("shares: total must be positive, got 0");
  constexpr std::uint32_t kSharesMax = 1 << 20;
  if (shares.total > kSharesMax)
    throw ConfigError(fmt::format("shares: {} are above {}", shares.total, kSharesMax));
  if (shares.count < 1) throw ConfigError("shares: count must be positive, got 0");
  if (shares.first >= shares.total || shares.count > shares.total - shares.first)
    throw ConfigError(fmt::format("shares: {} from {} on are out of range: there are {}",
                                  shares.count, shares.first, shares.total));
}

std::uint64_t draw_seed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

Cardinality cardinality(std::uint64_t count) {
  return count == kEndless ? Cardinality::endless() : Cardinality::of(count);
}

}  // namespace

Plan::Plan(const Dataset& dataset, const PlanOptions& options) {
  if (!dataset.batched())
    throw ConfigError("a plan needs batches, these elements are single samples", {},
                      "add .batch(n); for single samples .batch(1)");
  if (is_unresolved(*dataset.node()))
    throw ConfigError(
        "a plan needs what only the data shows: the samples of a select() or split(), or lengths",
        {}, "plan dataset.resolve(); a Loader does that by itself");
  check_shares(options.shares);
  const bool draw =
      (wants_drawn_seed(*dataset.node()) || PENSTOCK_OFF("shuffle.shared")) && !options.drawn_seed;
  const std::uint64_t seed = draw ? draw_seed() : options.drawn_seed.value_or(0);
  data_ = std::make_shared<const PlanData>(dataset, options, seed);
  check_strict(*data_);
  check_epoch_steps(steps(), options.epochs);
}

void refuse_drawn_seed(const PlanData& plan, std::uint32_t processes) {
  if (!wants_drawn_seed(*plan.dataset.node())) return;
  throw ConfigError(
      fmt::format("shuffle: Seed::random() would draw another seed in each of {} processes",
                  processes),
      {}, "set one seed for all processes; it may differ from run to run");
}

const Dataset& Plan::dataset() const {
  return data_->dataset;
}
const Shares& Plan::shares() const {
  return data_->options.shares;
}
Cardinality Plan::steps() const {
  if (data_->program.stream) return Cardinality::unknown();
  return cardinality(data_->geometry.steps());
}
Digests Plan::digests() const {
  return digests_of(*data_->dataset.node(), data_->options.tail);
}

PassCheck Plan::check(std::uint64_t pass) const {
  return check_pass(*data_, pass);
}

std::optional<Cardinality> Plan::samples() const {
  constexpr std::uint64_t kWalkMax = 1 << 16;
  const Steps& steps = data_->program.steps;
  if (data_->program.stream || has_sequence(data_->program)) return Cardinality::unknown();
  if (steps.rows() != kUncounted) return cardinality(steps.rows());
  // A shard of steps, or some shuffled steps: the samples depend on the pass.
  if (steps.count() > kWalkMax) return std::nullopt;
  std::uint64_t total = 0;
  for (std::uint64_t step = 0; step < steps.count(); ++step)
    total += steps.step({0, 0}, step).count;
  return Cardinality::of(total);
}

std::uint64_t Plan::batch_samples() const {
  return batch_samples_of(*data_);
}

std::uint64_t batch_samples_of(const PlanData& plan) {
  std::uint64_t largest = 0;
  const auto shape = steps_of(*plan.dataset.node(), plan.options.tail, plan.drawn_seed);
  for (const Node* leaf : shape.leaves) {
    const auto groups = leaf->groups(plan.options.tail);
    largest = std::max<std::uint64_t>(largest, groups ? groups->batch : 1);
  }
  return largest;
}

std::uint64_t largest_step_of(const PlanData& plan) {
  // The initial size; it grows when a larger step arrives, so that memory is not reserved for
  // nothing.
  constexpr std::uint64_t kStreamShare = 1 << 16;
  std::uint64_t largest = 1;
  const auto shape = steps_of(*plan.dataset.node(), plan.options.tail, plan.drawn_seed);
  for (const Node* leaf : shape.leaves) {
    const auto groups = leaf->groups(plan.options.tail);
    if (!groups) continue;
    const bool filled = groups->tail == Tail::pad || groups->tail == Tail::wrap;
    std::uint64_t samples = filled ? groups->batch : std::min(groups->batch, groups->count);
    if (plan.program.stream && !filled)
      samples = std::min(samples, kStreamShare * plan.options.shares.total);
    largest = std::max(largest, samples);
  }
  return largest;
}

std::vector<std::uint64_t> Plan::cut(std::uint64_t step) const {
  if (has_sequence(data_->program))
    throw ConfigError("cut: the size of a Sequence's batch is unknown until it is requested");
  const bool stream = data_->program.stream != nullptr;
  if (!stream && step >= data_->geometry.steps())
    throw ConfigError(fmt::format("step {} is out of range: the pass has {} steps", step,
                                  data_->geometry.steps()));
  const Place full{0, {}, 0, batch_samples()};
  const Cut cut = cut_of(stream ? full : data_->geometry.step(0, step), shares().total);
  std::vector<std::uint64_t> sizes;
  for (std::uint32_t share = 0; share < cut.shares; ++share) sizes.push_back(cut.size(share));
  return sizes;
}

std::optional<std::uint64_t> Plan::batch_bytes() const {
  if (!data_->program.spec.known || has_sequence(data_->program)) return std::nullopt;
  const std::uint64_t rows = Cut{largest_step_of(*data_), shares().total}.size(0);
  return BatchLayout(data_->program.spec, rows).bytes;
}

}  // namespace penstock
