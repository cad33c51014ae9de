#include "run/budget.h"

#include <algorithm>

#include "base/memory.h"

namespace penstock {
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
