#include "trace/activity.h"

#include <utility>

namespace penstock::trace {
namespace {

thread_local Activity* current = nullptr;

}  // namespace

Activity* set_activity(Activity* activity) {
  return std::exchange(current, activity);
}

void doing(const std::string& op, std::uint64_t first_sample, std::uint64_t samples) {
  if (current == nullptr) return;
  current->set_op(op);
  current->first_sample.store(first_sample, std::memory_order_relaxed);
  current->samples.store(samples, std::memory_order_relaxed);
}

bool at_sample(std::uint64_t sample) {
  if (current == nullptr) return true;
  current->first_sample.store(sample, std::memory_order_relaxed);
  current->samples.store(1, std::memory_order_relaxed);
  return still_wanted();
}

bool still_wanted() {
  return current == nullptr || !current->cancelled.load(std::memory_order_relaxed);
}

}  // namespace penstock::trace
