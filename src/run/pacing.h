#pragma once
// How much a thread takes at a time and how far ahead of the consumer the pool works. Decided from
// measured cost: a task should take about 100 us, so that taking it costs nothing against doing it,
// and the look-ahead should hold a few tasks per thread and no more.

#include <cstdint>
#include <string>
#include <vector>

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
  explicit Pacing(Limits limits);

  /// Rows that one task should hold now.
  [[nodiscard]] std::uint64_t task_rows() const { return task_rows_; }
  /// Steps that may be in flight or waiting for the consumer; at least 1.
  [[nodiscard]] std::uint64_t window() const { return window_; }

  /// A task of `rows` rows took `nanoseconds`; 0 where the clock did not move.
  void measured(std::uint64_t rows, std::uint64_t nanoseconds);
  /// So many rows should be on their way, for reads to overlap.
  void read_ahead(std::uint64_t rows) { read_rows_ = rows; }
  /// The consumer waited although the pool had stopped at the window.
  void consumer_waited();

  struct Decision {
    std::uint64_t task_rows;
    std::uint64_t window;
    std::string reason;
  };
  /// Changes of the window so far, with reasons; the first 32.
  [[nodiscard]] const std::vector<Decision>& decisions() const { return decisions_; }

 private:
  void decide(std::uint64_t window, const char* reason);

  Limits limits_;
  double task_nanoseconds_;      // what a task should take
  std::uint64_t task_rows_min_;  // less would leave worker processes without work
  std::uint64_t window_max_;
  double row_cost_ = 0;  // nanoseconds, smoothed; 0 until measured
  std::uint64_t task_rows_;
  std::uint64_t window_ = 1;
  std::uint64_t read_rows_ = 0;
  std::uint64_t spare_ = 1;  // the window is this many times what the threads need
  std::vector<Decision> decisions_;
};

}  // namespace penstock
