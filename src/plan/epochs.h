#pragma once
// Epochs that are counted in steps: whether the data has that many, and the same in words.

#include <optional>
#include <string>

#include "plan/plan_data.h"

namespace penstock {

/// Throws ConfigError where a pass of `pass` steps does not allow such epochs.
void check_epoch_steps(const Cardinality& pass, const std::optional<EpochSteps>& epochs);
[[noreturn]] void throw_too_few(std::uint64_t pass_steps, std::uint64_t asked);
/// What epochs and passes have to do with each other.
std::string epochs_text(const PlanData& plan);

}  // namespace penstock
