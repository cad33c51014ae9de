#pragma once
// One pool of threads per process, shared by all pipelines. It knows no batches: it asks what is
// attached for a piece of work, in turn, and sleeps when nobody has any.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/thread.h"

namespace penstock {

/// Something that has work for the pool. `run_one` is called from several threads at once.
class Work {
 public:
  virtual ~Work() = default;
  /// Takes one piece of work and does it; false when there was none. Never throws.
  virtual bool run_one() = 0;
};

/// Thread-safe. Starts with the first holder of `shared()`, ends with the last.
class Pool {
 public:
  explicit Pool(unsigned threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// The process's pool: usable_cores() threads, or what `set_shared_threads` asked for.
  static std::shared_ptr<Pool> shared();
  /// For the next pool that `shared()` makes; 0 = by cores.
  static void set_shared_threads(unsigned threads);

  /// At most `threads_max` threads are inside `work` at a time. Throws ResourceError when too many
  /// threads of the process were abandoned.
  void attach(std::shared_ptr<Work> work, unsigned threads_max);
  /// Returns once no thread is inside `work` and none will be. A thread that is still inside after
  /// `patience` (in a user function that does not return) is abandoned: it keeps `work` alive, ends
  /// when it comes back, and a new thread takes its place. Returns how many were.
  unsigned detach(const Work& work,
                  std::chrono::nanoseconds patience = std::chrono::hours(24 * 365));
  /// Says that an attached work has something to do again.
  void wake();

  [[nodiscard]] unsigned threads() const { return threads_count_; }
  /// Threads of the process that were abandoned and have not come back.
  static unsigned abandoned();
  static constexpr unsigned kAbandonedMax = 8;

 private:
  class Shared;
  static void serve(const std::shared_ptr<Shared>& shared, unsigned slot);
  void start_thread(unsigned slot);

  const unsigned threads_count_;
  const std::shared_ptr<Shared> shared_;  // an abandoned thread may outlive the pool
};

}  // namespace penstock
