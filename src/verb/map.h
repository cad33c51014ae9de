#pragma once

#include <cstdint>
#include <memory>

#include "op/op.h"
#include "penstock/dataset.h"

namespace penstock {

/// Adds a map of `op`; every form of Dataset::map ends here.
Dataset add_map(const Dataset& input, std::shared_ptr<const Op> op, std::uint64_t seed);

}  // namespace penstock
