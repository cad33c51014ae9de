#pragma once

#include <vector>

#include "penstock/dataset.h"

namespace penstock {

/// The parts one after the other, at least one. `buckets` are parts of one dataset, and share the
/// ids of its samples.
Dataset join_all(const std::vector<Dataset>& parts, bool buckets);

}  // namespace penstock
