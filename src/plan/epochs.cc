#include "plan/epochs.h"

#include <fmt/format.h>

namespace penstock {
namespace {

std::string counted(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// "3 epochs and 1 step of the next", or "7 steps" where that is less than an epoch
std::string in_epochs(std::uint64_t pass, std::uint64_t steps) {
  if (pass < steps) return counted(pass, "step");
  std::string epochs = counted(pass / steps, "epoch");
  if (pass % steps == 0) return epochs;
  return fmt::format("{} and {} of the next", epochs, counted(pass % steps, "step"));
}

std::string counted_text(std::uint64_t pass, const EpochSteps& epochs) {
  const std::uint64_t steps = epochs.steps;
  if (pass == steps) return fmt::format("an epoch: {} steps, one pass", steps);
  if (pass < steps)
    return fmt::format("an epoch: {} steps, although {} were requested: the data has no more", pass,
                       steps);
  if (epochs.restart)
    return fmt::format(
        "an epoch: the first {} of the {} steps of a new pass; the other {} are skipped", steps,
        pass, pass - steps);
  return fmt::format("an epoch: {} steps, and the next continues there: a pass is {}{}", steps,
                     in_epochs(pass, steps),
                     pass % steps != 0 ? ", so epochs and passes differ" : "");
}

/// For repeat() without an end: the steps of one round.
std::optional<std::uint64_t> round_steps(const PlanData& plan) {
  const auto single = plan.program.stream ? std::nullopt : plan.program.steps.single();
  if (!single || single->rounds != kEndless || single->groups.count == kEndless)
    return std::nullopt;
  return single->groups.steps();
}

}  // namespace

void throw_too_few(std::uint64_t pass_steps, std::uint64_t asked) {
  throw ConfigError(fmt::format("epochs: a pass over the data has {} steps, steps_per_epoch is {}",
                                pass_steps, asked),
                    {}, "repeat() the dataset, set fewer steps, or allow short_epoch");
}

void check_epoch_steps(const Cardinality& pass, const std::optional<EpochSteps>& epochs) {
  if (!epochs) return;
  if (epochs->steps == 0)
    throw ConfigError("epochs: steps_per_epoch is 0", {}, "set at least one step");
  if (pass.is_counted() && pass.count() < epochs->steps && !epochs->short_epoch)
    throw_too_few(pass.count(), epochs->steps);
}

std::string epochs_text(const PlanData& plan) {
  const EpochSteps& epochs = *plan.options.epochs;
  const std::uint64_t steps = epochs.steps;
  if (plan.program.stream)
    return fmt::format(
        "an epoch: {} steps{}; the length of a pass is known when it ends: fewer than {} {}", steps,
        epochs.restart ? " of a new pass" : ", and the next continues there", steps,
        epochs.short_epoch ? "make a shorter epoch" : "are an error");
  const std::uint64_t pass = plan.geometry.steps();
  if (pass != kEndless) return counted_text(pass, epochs);
  const auto round = round_steps(plan);
  if (!round || epochs.restart)
    return fmt::format("an epoch: {} steps of data without an end{}", steps,
                       epochs.restart ? ", from its start each time" : "");
  return fmt::format(
      "an epoch: {} steps, and the next continues there: a round of repeat() is {}{}", steps,
      in_epochs(*round, steps), *round != steps ? ", so epochs and rounds differ" : "");
}

}  // namespace penstock
