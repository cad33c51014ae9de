#pragma once
// The parameters and buffers of a module by name.

#include <penstock/train/optimizer.h>

#include <string>

namespace penstock::train {

/// Parameters, then buffers.
NamedTensors named_values(const torch::nn::Module& module);

/// Copies `values` into `module`. `what` names their origin in errors: throws StateError that lists
/// all missing and unexpected names and those of a different shape.
void load_values(const std::string& what, const NamedTensors& values, torch::nn::Module& module);

/// Names and shapes of all values: processes compare them before they train together.
std::string values_text(const torch::nn::Module& module);

}  // namespace penstock::train
