#include "run/budget.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "base/io.h"

namespace penstock {
namespace {

std::uint64_t number_in(const char* path) {
  const auto text = Io::real().read_text(path);
  if (!text || (*text).empty() || (*text)[0] < '0' || (*text)[0] > '9') return UINT64_MAX;
  return std::stoull(*text);
}

std::uint64_t memory_available() {
  std::uint64_t available = 4ULL << 30;
  if (const auto text = Io::real().read_text("/proc/meminfo")) {
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

}  // namespace

ByteBudget& ByteBudget::process() {
  static ByteBudget budget(memory_available() / 4);
  return budget;
}

bool ByteBudget::take(std::uint64_t bytes, bool must) {
  const std::uint64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
  if (must || before + bytes <= limit_) return true;
  give_back(bytes);
  return false;
}

}  // namespace penstock
