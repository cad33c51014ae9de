#include "trace/phases.h"

#include <array>
#include <atomic>

namespace penstock::trace {
namespace {

struct alignas(64) Total {
  std::atomic<std::uint64_t> nanoseconds{0};
};
std::array<Total, kPhases> totals;

std::atomic<std::uint64_t>& total_of(Phase phase) {
  return totals[static_cast<std::size_t>(phase)].nanoseconds;
}

}  // namespace

std::uint64_t phase_total(Phase phase) {
  return total_of(phase).load(std::memory_order_relaxed);
}

void add_phase(Phase phase, std::chrono::nanoseconds took) {
  total_of(phase).fetch_add(static_cast<std::uint64_t>(took.count()), std::memory_order_relaxed);
}

}  // namespace penstock::trace
