#include "penstock/loader.h"

#include <fmt/format.h>

#include <utility>

#include "base/report.h"
#include "feed/iterator.h"
#include "feed/own_shares.h"
#include "plan/empty.h"

namespace penstock {

Loader::Loader(const Dataset& dataset, const LoaderOptions& options)
    : Loader(plan_for(dataset, options), without_plan(options)) {
  if (const auto world = own_world(options))
    own_->impl_->watch()->shares.announce(own_shares_text(plan(), *world));
}

Loader::Loader(const Plan& plan, const LoaderOptions& options) {
  if (options.shares || options.tail)
    throw ConfigError(fmt::format("loader: {} was set together with a plan, which has its own",
                                  options.shares ? "shares" : "tail"),
                      {}, "leave it out, or make the plan with it");
  if (options.empty == Empty::refuse) refuse_empty_shares(*plan.data());
  own_.reset(new Iterator(
      std::make_unique<Iterator::Impl>(plan, options, std::make_shared<LoaderWatch>())));
  for (const std::string& warning : plan.data()->program.warnings) penstock::report(warning);
}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;
Loader::~Loader() = default;

const Plan& Loader::plan() const {
  return own_->impl_->plan();
}
std::uint64_t Loader::size() const {
  return plan().steps().count();
}
Iterator Loader::iterate() const {
  return Iterator(
      std::make_unique<Iterator::Impl>(plan(), own_->impl_->options(), own_->impl_->watch()));
}
std::optional<Batch> Loader::next() {
  return own_->next();
}
std::optional<std::vector<Batch>> Loader::next_step() {
  return own_->next_step();
}
bool Loader::at_end() const {
  return own_->at_end();
}
std::uint64_t Loader::epoch() const {
  return own_->epoch();
}
void Loader::set_epoch(std::uint64_t epoch) {
  own_->set_epoch(epoch);
}
State Loader::state() const {
  return own_->state();
}
void Loader::restore(const State& state) {
  own_->restore(state);
}
Batch Loader::step(std::uint64_t step) const {
  auto batches = own_->replay(step);
  if (batches.size() != 1)
    throw ConfigError(
        fmt::format("step() returns one batch, but this loader serves {} shares", batches.size()),
        {}, "use iterate().replay(step)");
  return std::move(batches.front());
}
void Loader::stop() {
  own_->stop();
}
std::uint32_t Loader::trace_run() const {
  return own_->trace_run();
}

EpochIterator<Loader, Batch> Loader::begin() {
  own_->impl_->begin_loop();
  return EpochIterator<Loader, Batch>(this);
}

}  // namespace penstock
