#include "base/fault.h"

#include <atomic>
#include <charconv>
#include <sstream>

#include "base/mix.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace penstock::fault {
namespace {

struct Point {
  std::uint64_t hits = 0;
  std::uint64_t fire_at = 0;
};

Mutex mutex;
std::map<std::string, Point> points PENSTOCK_GUARDED_BY(mutex);
std::string broken PENSTOCK_GUARDED_BY(mutex);
std::atomic<bool> any_broken{false};
std::atomic<std::uint64_t> yield_seed{0};
std::atomic<std::uint64_t> yield_draws{0};

}  // namespace

void arm(const std::string& name, std::uint64_t nth) {
  Lock lock(mutex);
  Point& point = points[name];
  point.fire_at = nth == 0 ? 0 : point.hits + nth;
}

bool arm_listed(const std::string& text) {
  std::istringstream list(text);
  for (std::string entry; std::getline(list, entry, ',');) {
    const std::size_t colon = entry.find(':');
    if (colon == std::string::npos) return false;
    std::uint64_t nth = 0;
    const char* const end = entry.data() + entry.size();
    const auto [after, error] = std::from_chars(entry.data() + colon + 1, end, nth);
    if (error != std::errc() || after != end) return false;
    arm(entry.substr(0, colon), nth);
  }
  return true;
}

void disarm_all() {
  Lock lock(mutex);
  points.clear();
}

std::map<std::string, std::uint64_t> hits() {
  Lock lock(mutex);
  std::map<std::string, std::uint64_t> counts;
  for (const auto& [name, point] : points) counts[name] = point.hits;
  return counts;
}

bool fires(const char* name) {
  Lock lock(mutex);
  Point& point = points[name];
  return ++point.hits == point.fire_at;
}

void switch_off(const std::string& name) {
  Lock lock(mutex);
  broken = name;
  any_broken = !name.empty();
}

bool is_off(const char* name) {
  if (!any_broken.load(std::memory_order_relaxed)) return false;
  Lock lock(mutex);
  return broken == name;
}

void set_yield_seed(std::uint64_t seed) {
  yield_seed.store(seed);
}

void maybe_yield() {
  const std::uint64_t seed = yield_seed.load(std::memory_order_relaxed);
  if (seed == 0) return;
  const std::uint64_t draw = combine(seed, yield_draws.fetch_add(1, std::memory_order_relaxed));
  if (draw % 4 == 0) yield_thread();
}

}  // namespace penstock::fault
