#include "base/memory.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "base/cgroup.h"
#include "penstock/io.h"

namespace penstock {
namespace {

constexpr std::uint64_t kTextMax = 1 << 20;  // of what the kernel says

}  // namespace

std::uint64_t memory_available() {
  std::uint64_t available = 4ULL << 30;
  if (const auto text = Io::real().read_text("/proc/meminfo", kTextMax)) {
    std::istringstream lines(*text);
    std::string key;
    std::uint64_t kib = 0;
    std::string unit;
    while (lines >> key >> kib) {
      std::getline(lines, unit);
      if (key == "MemAvailable:") available = kib * 1024;
    }
  }
  const CgroupLimits group = cgroup_limits();
  available = std::min(available, group.memory_max.value_or(available));
  return std::min(available, group.memory_left.value_or(available));
}

}  // namespace penstock
