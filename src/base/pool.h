#pragma once
// One pool of threads per process, shared by all pipelines. It knows no batches: it asks what is
// attached for a piece of work, in turn, and sleeps when nobody has any.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
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

  /// The process's pool: usable_cores() threads, or what `set_shared_threads` asked for.
  static std::shared_ptr<Pool> shared();
  /// For the next pool that `shared()` makes; 0 = by cores.
  static void set_shared_threads(unsigned threads);

  /// At most `threads_max` threads are inside `work` at a time.
  void attach(std::shared_ptr<Work> work, unsigned threads_max);
  /// Returns once no thread is inside `work` and none will be.
  void detach(const Work& work);
  /// Says that an attached work has something to do again.
  void wake();

  [[nodiscard]] unsigned threads() const { return threads_count_; }

 private:
  struct Member {
    std::shared_ptr<Work> work;
    unsigned threads_max;
    unsigned inside = 0;
    bool leaving = false;
  };

  void serve();
  bool serve_once(std::size_t& turn);

  const unsigned threads_count_;
  std::vector<Thread> threads_;

  Mutex mutex_;
  Condition work_or_stop_;
  Condition left_;
  std::vector<std::shared_ptr<Member>> members_ PENSTOCK_GUARDED_BY(mutex_);
  std::uint64_t signals_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  unsigned sleeping_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  bool stopping_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

}  // namespace penstock
