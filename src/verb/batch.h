#pragma once

#include <optional>
#include <string>

#include "penstock/spec.h"

namespace penstock {

/// What to say when elements that are batched look like batches already: several fields with one
/// first dimension, of different ranks. Nothing where they do not.
std::optional<std::string> batch_of_batches(const ElementSpec& element);

}  // namespace penstock
