#pragma once

#include <cstdint>
#include <memory>

#include "op/op.h"
#include "penstock/dataset.h"

namespace penstock {

/// Adds a map of `op`; every overload of Dataset::map calls this.
Dataset add_map(const Dataset& input, std::shared_ptr<const Op> op, std::uint64_t seed);

}  // namespace penstock
