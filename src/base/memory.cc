#include "base/memory.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "penstock/io.h"

namespace penstock {
namespace {

constexpr std::uint64_t kTextMax = 1 << 20;  // of what the kernel says

std::uint64_t number_in(const char* path) {
  const auto text = Io::real().read_text(path, kTextMax);
  if (!text || (*text).empty() || (*text)[0] < '0' || (*text)[0] > '9') return UINT64_MAX;
  return std::stoull(*text);
}

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
  available = std::min(available, number_in("/sys/fs/cgroup/memory.max"));
  return std::min(available, number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
}

}  // namespace penstock
