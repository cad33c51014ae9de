#pragma once
// A mutex that clang's thread-safety analysis understands. One class, one mutex; callers never see
// the lock.

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define PENSTOCK_ANNOTATE(x) __attribute__((x))
#else
#define PENSTOCK_ANNOTATE(x)
#endif
#define PENSTOCK_GUARDED_BY(x) PENSTOCK_ANNOTATE(guarded_by(x))
#define PENSTOCK_REQUIRES(x) PENSTOCK_ANNOTATE(requires_capability(x))

namespace penstock {

class PENSTOCK_ANNOTATE(capability("mutex")) Mutex {
 public:
  void lock() PENSTOCK_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  void unlock() PENSTOCK_ANNOTATE(release_capability()) { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

class PENSTOCK_ANNOTATE(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) PENSTOCK_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~Lock() PENSTOCK_ANNOTATE(release_capability()) { mutex_.unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

/// Waits with the mutex held by the caller; re-check the condition in a loop around `wait`.
class Condition {
 public:
  void wait(Mutex& mutex) PENSTOCK_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    condition_.wait(held);
    held.release();
  }
  /// Like `wait`, but returns after `duration` at the latest.
  void wait_for(Mutex& mutex, std::chrono::nanoseconds duration) PENSTOCK_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    condition_.wait_for(held, duration);
    held.release();
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace penstock
