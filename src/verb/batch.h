#pragma once

#include <optional>
#include <string>

#include "penstock/spec.h"

namespace penstock {

/// Returns a warning if the elements to batch look like batches already: several fields with the
/// same first dimension and different ranks.
std::optional<std::string> batch_of_batches(const ElementSpec& element);

}  // namespace penstock
