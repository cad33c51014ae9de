#pragma once
// How much more memory this process may use.

#include <cstdint>

namespace penstock {

/// Bytes: the smaller of what the machine has available and what the cgroup allows.
std::uint64_t memory_available();

}  // namespace penstock
