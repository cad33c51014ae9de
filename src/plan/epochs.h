#pragma once
// Epochs counted in steps: checks that the data has enough, and describes them.

#include <optional>
#include <string>

#include "plan/plan_data.h"

namespace penstock {

/// Throws ConfigError if a pass of `pass` steps does not allow such epochs.
void check_epoch_steps(const Cardinality& pass, const std::optional<EpochSteps>& epochs);
[[noreturn]] void throw_too_few(std::uint64_t pass_steps, std::uint64_t asked);
/// Describes how epochs and passes are related.
std::string epochs_text(const PlanData& plan);

}  // namespace penstock
