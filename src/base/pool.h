#pragma once
// One pool of threads per process, shared by all pipelines. It knows nothing about batches: it
// polls the attached works in turn for a piece of work, and sleeps when none has any.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/thread.h"

namespace penstock {

/// A supplier of work for the pool. `run_one` is called from several threads at the same time.
class Work {
 public:
  virtual ~Work() = default;
  /// Takes one piece of work and does it; returns false if there was none. Never throws.
  virtual bool run_one() = 0;
};

/// Thread-safe. Starts with the first holder of `shared()` and ends with the last.
class Pool {
 public:
  explicit Pool(unsigned threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// The pool of the process: usable_cores() threads, or the number of `set_shared_threads`.
  static std::shared_ptr<Pool> shared();
  /// For the next pool that `shared()` creates; 0: by cores.
  static void set_shared_threads(unsigned threads);

  /// How long `attach` waits when too many threads of the process were abandoned.
  struct Patience {
    std::chrono::nanoseconds wait_max = std::chrono::seconds(30);
    std::function<void()> while_waiting = {};  // called repeatedly; an exception ends the wait
  };
  /// At most `threads_max` threads are inside `work` at a time. Throws ResourceError if
  /// `abandoned_max()` or more threads of the process have not returned within the patience: they
  /// are stuck, and not just slow.
  void attach(std::shared_ptr<Work> work, unsigned threads_max, const Patience& patience);
  void attach(std::shared_ptr<Work> work, unsigned threads_max) {
    attach(std::move(work), threads_max, Patience());
  }
  /// Returns once no thread is inside `work` and none will enter it. A thread that is still inside
  /// after `patience` (in a user's function that does not return) is abandoned: it keeps `work`
  /// alive and ends when it returns, and a new thread takes its place. Returns the number of
  /// abandoned threads.
  unsigned detach(const Work& work,
                  std::chrono::nanoseconds patience = std::chrono::hours(24 * 365));
  /// Wakes threads: an attached work has something to do again.
  void wake();

  [[nodiscard]] unsigned threads() const { return threads_count_; }
  /// Number of attached works.
  [[nodiscard]] std::size_t works() const;
  /// True on a thread of any pool. Such a thread must not only wait for work of a pool but run it:
  /// all other threads may be blocked in the same way.
  static bool on_own_thread();
  /// Threads of the process that were abandoned and have not returned.
  static unsigned abandoned();
  /// Ending one loop over slow samples may abandon every thread of the pool and every prefetch
  /// thread, and that must not prevent the next loop from starting.
  [[nodiscard]] unsigned abandoned_max() const {
    return kStuckMax + threads_count_ + kReadingThreadsMax;
  }
  static constexpr unsigned kReadingThreadsMax = 32;

 private:
  class Shared;
  static constexpr unsigned kStuckMax = 8;
  static void serve(const std::shared_ptr<Shared>& shared, unsigned slot);
  void start_missing_threads();
  void stop_threads();
  void wait_for_abandoned(const Patience& patience) const;

  const unsigned threads_count_;
  const std::shared_ptr<Shared> shared_;  // an abandoned thread may outlive the pool
};

}  // namespace penstock
