#pragma once
// Lets one thread at a time into an iterator or a feed.

#include <chrono>
#include <mutex>

#include "base/mutex.h"
#include "interpreter.h"

namespace penstock::python {

/// A second thread waits, without the GIL. Thread-safe.
class OneAtATime {
 public:
  /// False if another thread is inside.
  bool try_enter() {
    Lock lock(mutex_);
    if (inside_) return false;
    inside_ = true;
    return true;
  }
  /// Waits for the thread inside, and handles signals meanwhile. Call it without the GIL. Throws
  /// ConfigError in a user's function, which that thread may be waiting for.
  void enter() {
    while (!try_enter()) {
      if (in_user_function())
        throw ConfigError(
            "a function of the pipeline uses a loader or feed that another call waits in", {},
            "use the loader outside its functions, or another loader inside them");
      look_for_signals();
      Lock lock(mutex_);
      if (inside_) left_.wait_for(mutex_, std::chrono::milliseconds(50));
    }
  }
  void leave() {
    Lock lock(mutex_);
    inside_ = false;
    left_.notify_all();
  }

 private:
  Mutex mutex_;
  Condition left_;
  bool inside_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

/// Inside while it lives.
class Inside {
 public:
  explicit Inside(OneAtATime& door) : door_(&door) { door.enter(); }
  /// Does not wait; check whether it succeeded.
  Inside(OneAtATime& door, std::try_to_lock_t) : door_(door.try_enter() ? &door : nullptr) {}
  ~Inside() {
    if (door_ != nullptr) door_->leave();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  explicit operator bool() const { return door_ != nullptr; }

 private:
  OneAtATime* door_;
};

}  // namespace penstock::python
