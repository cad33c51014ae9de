#pragma once
// A spec that nothing declares, from some samples.

#include <span>

#include "penstock/spec.h"

namespace penstock {

/// The spec that all of `samples` have, of which there is at least one: sizes in which they differ
/// are unknown. Throws ConfigError if their structures, dtypes or numbers of dimensions differ.
ElementSpec spec_of_samples(std::span<const Sample> samples);

}  // namespace penstock
