#pragma once
// Several threads on one sequence: rows that must be computed before the stream can continue are
// split over idle threads.

#include <atomic>
#include <exception>
#include <functional>

#include "base/mutex.h"
#include "penstock/clock.h"
#include "plan/cursor.h"

namespace penstock {

/// `run` is called by one thread at a time; `help` is thread-safe.
class PoolGang final : public Gang {
 public:
  /// `call_help` notifies other threads that there is work.
  PoolGang(unsigned threads, std::function<void()> call_help, Clock& clock)
      : threads_(threads), call_help_(std::move(call_help)), clock_(clock) {}

  void run(std::size_t rows, const Context& context, const Body& body) override;

  [[nodiscard]] bool wants_help() const { return open_.load(std::memory_order_acquire); }
  /// Computes one piece if help is still needed. Only one, since other loaders share the thread.
  void help(const Context& context);
  [[nodiscard]] unsigned threads() const override { return threads_; }

 private:
  struct Job {
    const Body* body = nullptr;
    std::size_t rows = 0;
    std::size_t piece = 1;
    std::atomic<std::size_t> next{0};
    std::exception_ptr broken = nullptr;  // guarded by the gang's mutex
    unsigned helpers = 0;                 // guarded by the gang's mutex
  };
  /// Returns false if no piece was left.
  bool work_one(Job& job, const Context& context);

  const unsigned threads_;
  const std::function<void()> call_help_;
  Clock& clock_;
  std::atomic<bool> open_{false};
  Mutex mutex_;
  Condition done_;
  Job* job_ PENSTOCK_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace penstock
