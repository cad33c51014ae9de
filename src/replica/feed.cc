#include "replica/feed.h"

#include <fmt/format.h>

#include <utility>

#include "base/fault.h"
#include "plan/epochs.h"

namespace penstock {
namespace {

/// Options of a loader whose plan exists already.
LoaderOptions without_plan(LoaderOptions options) {
  options.tail.reset();
  return options;
}

std::optional<EpochSteps> epochs_of(const DistributeOptions& options) {
  if (!options.steps_per_epoch) return std::nullopt;
  return EpochSteps{*options.steps_per_epoch, options.restart, options.short_epoch};
}

}  // namespace

void check_epochs(const Cardinality& steps, const DistributeOptions& options) {
  const bool asked = options.steps_per_epoch.has_value();
  if (steps.is_endless() && !asked)
    throw ConfigError("distribute: the dataset is endless, so an epoch would have no end", {},
                      "set steps_per_epoch, or leave repeat() out");
  if (!asked && (options.restart || options.short_epoch))
    throw ConfigError(fmt::format("distribute: {} without steps_per_epoch",
                                  options.restart ? "restart" : "short_epoch"),
                      {}, "set steps_per_epoch; without it an epoch is one pass");
  check_epoch_steps(steps, epochs_of(options));
}

Feed::Impl::Impl(const Dataset& dataset, const DistributeOptions& options, const Shares& shares,
                 std::shared_ptr<StrategyCore> core)
    : loader_(Plan(dataset.resolve(options.loader.while_waiting), {.shares = shares,
                                                                   .tail = options.loader.tail,
                                                                   .epochs = epochs_of(options),
                                                                   .world = core->world_text()}),
              without_plan(options.loader)),
      core_(std::move(core)),
      number_(++core_->feeds),
      steps_(options.steps_per_epoch),
      restart_(options.restart),
      short_epoch_(options.short_epoch) {}

void Feed::Impl::share_seed(Coordinator& coordinator) {
  if (core_->world.size == 1) return;
  State state = loader_.state();
  if (!state.drawn_seed) return;
  if (coordinator.world() == 1) refuse_drawn_seed(*plan().data(), core_->world.size);
  state.drawn_seed = coordinator.share(*state.drawn_seed);
  loader_.restore(state);
}

Step Feed::Impl::step_of(std::vector<Batch> shares, const State::Epochs& at) {
  loop_.took_batch();
  Step step;
  step.shares_ = std::move(shares);
  step.epoch_ = at.epoch;
  step.step_ = at.step;
  step.feed_ = number_;
  step.core_ = core_;
  step.recorder_ = loader_.recorder();
  return step;
}

void Feed::Impl::end_epoch() {
  loop_.end_epoch();
  ++epoch_;
  epoch_steps_ = 0;
  if (!restart_ || pass_steps_ == 0) return;
  loader_.set_epoch(loader_.epoch() + 1);
  pass_steps_ = 0;
}

/// The next step of this or the next pass; nullopt if the data is too short for an epoch.
std::optional<std::vector<Batch>> Feed::Impl::pull() {
  auto shares = loader_.next_step();
  if (shares) return shares;
  if (std::exchange(pass_steps_, 0) < *steps_ || PENSTOCK_OFF("feed.goes_on")) return std::nullopt;
  return loader_.next_step();
}

std::optional<Step> Feed::Impl::next() {
  resumed_ = false;
  if (!steps_) {
    auto shares = loader_.next_step();
    if (!shares) {
      loop_.end_epoch();
      return std::nullopt;
    }
    const State::Epochs at{shares->front().epoch(), shares->front().step()};
    return step_of(std::move(*shares), at);
  }
  if (epoch_steps_ == *steps_) {
    end_epoch();
    return std::nullopt;
  }
  const std::uint64_t got = pass_steps_;
  auto shares = pull();
  if (!shares) {
    end_epoch();
    if (short_epoch_ || PENSTOCK_OFF("feed.short_epoch")) return std::nullopt;
    throw_too_few(got, *steps_);
  }
  const State::Epochs at{epoch_, epoch_steps_++};
  ++pass_steps_;
  return step_of(std::move(*shares), at);
}

bool Feed::Impl::at_end() const {
  if (!steps_) return loader_.at_end();
  if (epoch_steps_ == *steps_) return true;
  // The length of a pass over a stream is unknown until it ends.
  const Cardinality pass = plan().steps();
  const std::uint64_t pass_steps = pass.is_counted() ? pass.count() : pass_steps_;
  return !pass.is_endless() && pass_steps < *steps_ && loader_.at_end();
}

std::uint64_t Feed::Impl::size() const {
  return steps_ ? *steps_ : plan().steps().count();
}

State Feed::Impl::state() const {
  State state = loader_.state();
  if (!steps_) return state;
  state.epochs = at_end() ? State::Epochs{epoch_ + 1, 0} : State::Epochs{epoch_, epoch_steps_};
  return state;
}

void Feed::Impl::restore(const State& state) {
  if (steps_ && state.epochs && state.epochs->step >= *steps_)
    throw StateError(
        fmt::format("the state was taken after {} steps of an epoch, but epochs have {} steps here",
                    state.epochs->step, *steps_),
        {}, "distribute with the steps_per_epoch that the state was saved with");
  loader_.restore(state);
  loop_.move();
  resumed_ = true;
  if (!steps_) return;
  pass_steps_ = state.step;
  if (state.epochs) {
    epoch_ = state.epochs->epoch;
    epoch_steps_ = state.epochs->step;
  } else if (restart_) {
    // The state of a Loader may be beyond the steps of an epoch: that epoch is then over.
    const bool over = state.step >= *steps_;
    epoch_ = state.epoch + (over ? 1 : 0);
    epoch_steps_ = over ? 0 : state.step;
  } else if (plan().steps().is_unknown()) {
    epoch_ = state.epoch;
    epoch_steps_ = state.step % *steps_;
  } else {
    // The state of a Loader: convert its position to our epochs.
    const std::uint64_t pass = plan().steps().is_counted() ? plan().steps().count() : 0;
    const std::uint64_t passed = state.epoch * pass + state.step;
    epoch_ = passed / *steps_;
    epoch_steps_ = passed % *steps_;
  }
  // Saved at the end of an epoch, in the middle of a pass.
  if (restart_ && epoch_steps_ == 0 && pass_steps_ > 0) {
    loader_.set_epoch(loader_.epoch() + 1);
    pass_steps_ = 0;
  }
}

void Feed::Impl::set_epoch(std::uint64_t target) {
  if (resumed_ && target == epoch()) return;
  if (steps_ && !restart_ && target != epoch_)
    throw ConfigError(fmt::format("epoch {}: epochs of {} steps may begin in the middle of a pass",
                                  target, *steps_),
                      {}, "restore a state, or distribute with restart");
  loader_.set_epoch(target);
  loop_.move();
  resumed_ = false;
  epoch_ = target;
  epoch_steps_ = pass_steps_ = 0;
}

void Feed::Impl::begin_loop() {
  if (loop_.begin()) {
    if (steps_) {
      end_epoch();
    } else {
      loader_.set_epoch(loader_.epoch() + 1);
    }
  }
  loop_.enter();
}

Feed::Feed(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Feed::Feed(Feed&&) noexcept = default;
Feed& Feed::operator=(Feed&&) noexcept = default;
Feed::~Feed() = default;

std::optional<Step> Feed::next() {
  return impl_->next();
}
bool Feed::at_end() const {
  return impl_->at_end();
}
const Plan& Feed::plan() const {
  return impl_->plan();
}
std::uint64_t Feed::size() const {
  return impl_->size();
}
std::uint64_t Feed::epoch() const {
  return impl_->epoch();
}
void Feed::set_epoch(std::uint64_t epoch) {
  impl_->set_epoch(epoch);
}
State Feed::state() const {
  return impl_->state();
}
void Feed::restore(const State& state) {
  impl_->restore(state);
}
void Feed::stop() {
  impl_->stop();
}
const Ledger& Feed::ledger() const {
  return impl_->ledger();
}
Report Feed::report() const {
  return impl_->report();
}
EpochIterator<Feed, Step> Feed::begin() {
  impl_->begin_loop();
  return EpochIterator<Feed, Step>(this);
}

std::uint64_t Step::valid_count() const {
  std::uint64_t count = 0;
  for (const Batch& share : shares_) count += share.valid_count();
  return count;
}

std::uint64_t Step::global_valid() const {
  return shares_.empty() ? 0 : shares_.front().global_valid();
}

std::vector<detail::ShareCount> Step::counts() const {
  std::vector<detail::ShareCount> counts;
  for (const Batch& share : shares_) {
    detail::ShareCount count{share.rows(), share.valid_count(), {}};
    if (count.valid != count.rows) count.mask.assign(share.valid().begin(), share.valid().end());
    counts.push_back(std::move(count));
  }
  return counts;
}

}  // namespace penstock
