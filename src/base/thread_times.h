#pragma once
// How the calling thread has spent its time, as the kernel counts it.

#include <cstdint>

namespace penstock {

/// Nanoseconds on a CPU. Takes about 0.2 us.
std::uint64_t cpu_time_here();
/// Nanoseconds for which it could have run but no CPU was free; 0 where the kernel does not count
/// it. Takes about 10 us.
std::uint64_t run_delay_here();

}  // namespace penstock
