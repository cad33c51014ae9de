#include "codec/decode_budget.h"

#include <chrono>

#include "base/memory.h"

namespace penstock {

DecodeBudget& DecodeBudget::process() {
  static DecodeBudget budget(memory_available() / 4);
  return budget;
}

bool DecodeBudget::Claim::add(DecodeBudget& budget, std::uint64_t bytes,
                              const Cancelled& cancelled) {
  bytes_ += bytes;
  if (budget_ != nullptr) {
    budget.change(bytes, 0);
    return true;
  }
  if (bytes_ < kCountedBytes) return true;
  if (!budget.enter(bytes_, cancelled)) return false;
  budget_ = &budget;
  return true;
}

void DecodeBudget::Claim::release() {
  if (budget_ != nullptr) budget_->change(0, bytes_);
}

bool DecodeBudget::enter(std::uint64_t bytes, const Cancelled& cancelled) {
  // Cancelling a sample sets a flag; nothing notifies the threads that wait here.
  constexpr std::chrono::milliseconds kLookAgain{20};
  Lock lock(mutex_);
  const std::uint64_t place = next_++;
  line_.insert(place);
  const auto has_room = [&]() PENSTOCK_REQUIRES(mutex_) {
    return used_ == 0 || (used_ <= bytes_max_ && bytes <= bytes_max_ - used_);
  };
  while (*line_.begin() != place || !has_room()) {
    if (cancelled && cancelled()) {
      line_.erase(place);
      changed_.notify_all();
      return false;
    }
    changed_.wait_for(mutex_, kLookAgain);
  }
  line_.erase(place);
  used_ += bytes;
  changed_.notify_all();
  return true;
}

void DecodeBudget::change(std::uint64_t more, std::uint64_t less) {
  Lock lock(mutex_);
  used_ = used_ + more - less;
  changed_.notify_all();
}

std::uint64_t DecodeBudget::used() const {
  Lock lock(mutex_);
  return used_;
}

std::size_t DecodeBudget::waiting() const {
  Lock lock(mutex_);
  return line_.size();
}

}  // namespace penstock
