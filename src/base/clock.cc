#include "penstock/clock.h"

#include <set>

#include "base/mutex.h"
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

class VirtualClock::Time {
 public:
  Nanoseconds now() {
    Lock lock(mutex_);
    return now_;
  }

  void pause(Nanoseconds duration) {
    Lock lock(mutex_);
    const Nanoseconds until = now_ + duration;
    if (until <= now_) return;
    wakes_.insert(until);
    changed_.notify_all();
    while (now_ < until) changed_.wait(mutex_);
  }

  void advance(Nanoseconds duration) {
    Lock lock(mutex_);
    now_ += duration;
    wakes_.erase(wakes_.begin(), wakes_.upper_bound(now_));
    changed_.notify_all();
  }

  void wait_for_sleepers(int count) {
    Lock lock(mutex_);
    while (static_cast<int>(wakes_.size()) < count) changed_.wait(mutex_);
  }

 private:
  Mutex mutex_;
  Condition changed_;
  Nanoseconds now_ PENSTOCK_GUARDED_BY(mutex_){0};
  std::multiset<Nanoseconds> wakes_
      PENSTOCK_GUARDED_BY(mutex_);  // wake-up times of the sleeping threads
};

VirtualClock::VirtualClock() : time_(std::make_unique<Time>()) {}
VirtualClock::~VirtualClock() = default;

Nanoseconds VirtualClock::now() const {
  return time_->now();
}

void VirtualClock::pause(Nanoseconds duration) {
  time_->pause(duration);
}

void VirtualClock::advance(Nanoseconds duration) {
  time_->advance(duration);
}

void VirtualClock::wait_for_sleepers(int count) {
  time_->wait_for_sleepers(count);
}

}  // namespace penstock
