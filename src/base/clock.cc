#include "base/clock.h"

#include "base/thread.h"

namespace penstock {
namespace {

class RealClock final : public Clock {
 public:
  [[nodiscard]] Nanoseconds now() const override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
  void pause(Nanoseconds duration) override { sleep_thread(duration); }
};

}  // namespace

Clock& Clock::real() {
  static RealClock clock;
  return clock;
}

Nanoseconds VirtualClock::now() const {
  Lock lock(mutex_);
  return now_;
}

void VirtualClock::pause(Nanoseconds duration) {
  Lock lock(mutex_);
  const Nanoseconds until = now_ + duration;
  if (until <= now_) return;
  wakes_.insert(until);
  changed_.notify_all();
  while (now_ < until) changed_.wait(mutex_);
}

void VirtualClock::advance(Nanoseconds duration) {
  Lock lock(mutex_);
  now_ += duration;
  wakes_.erase(wakes_.begin(), wakes_.upper_bound(now_));
  changed_.notify_all();
}

void VirtualClock::wait_for_sleepers(int count) {
  Lock lock(mutex_);
  while (static_cast<int>(wakes_.size()) < count) changed_.wait(mutex_);
}

}  // namespace penstock
