#pragma once
// How much a thread takes at a time and how far ahead of the consumer the pool works. Decided from
// measured cost: a task should take about 100 us, so that taking it costs nothing against doing it,
// and the look-ahead should hold a few tasks per thread and no more.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace penstock {

/// Guarded by its owner's mutex.
class Pacing {
 public:
  struct Limits {
    unsigned threads = 1;
    std::uint64_t step_rows = 1;
    std::uint64_t step_bytes = 1;
    std::uint64_t bytes_max = UINT64_MAX;
    std::uint64_t steps_wished = 0;
    std::uint64_t rows_at_once = 0;  // what worker processes take at a time; 0: there are none
  };
  struct Decision {
    std::uint64_t task_rows;
    std::uint64_t window;
    std::string reason;
  };
  /// Changes of the window so far, with reasons; the first 32. Any thread may ask, without the
  /// owner's mutex, which may be held for as long as it takes to plan the reads of a step.
  class Log {
   public:
    void add(Decision decision);
    [[nodiscard]] std::vector<Decision> decisions() const;

   private:
    mutable Mutex mutex_;
    std::vector<Decision> decisions_ PENSTOCK_GUARDED_BY(mutex_);
  };
  explicit Pacing(Limits limits) : Pacing(limits, std::make_shared<Log>()) {}
  Pacing(Limits limits, std::shared_ptr<Log> log);

  /// Rows that one task should hold now.
  [[nodiscard]] std::uint64_t task_rows() const { return task_rows_; }
  /// Steps that may be in flight or waiting for the consumer; at least 1.
  [[nodiscard]] std::uint64_t window() const { return window_; }

  /// A task of `rows` rows took `nanoseconds`; 0 where the clock did not move. The window stays at
  /// `window_min` steps or more, where bytes allow.
  void measured(std::uint64_t rows, std::uint64_t nanoseconds, std::uint64_t window_min = 0);
  /// A step turned out to hold `bytes`: texts and ragged fields are not in its layout.
  void measured_bytes(std::uint64_t bytes);
  /// Bytes that a step is expected to hold.
  [[nodiscard]] std::uint64_t step_bytes() const { return step_bytes_; }
  /// So many rows should be on their way, for reads to overlap.
  void read_ahead(std::uint64_t rows) { read_rows_ = rows; }
  /// The consumer waited although the pool had stopped at the window.
  void consumer_waited();

  [[nodiscard]] std::vector<Decision> decisions() const { return log_->decisions(); }

 private:
  void decide(std::uint64_t window, const char* reason);
  [[nodiscard]] std::uint64_t steps_within(std::uint64_t step_bytes) const;

  Limits limits_;
  double task_nanoseconds_;      // what a task should take
  std::uint64_t task_rows_min_;  // less would leave worker processes without work
  std::uint64_t step_bytes_;
  std::uint64_t window_max_;
  double row_cost_ = 0;  // nanoseconds, smoothed; 0 until measured
  std::uint64_t task_rows_;
  std::uint64_t window_ = 1;
  std::uint64_t read_rows_ = 0;
  std::uint64_t spare_ = 1;  // the window is this many times what the threads need
  std::shared_ptr<Log> log_;
};

}  // namespace penstock
