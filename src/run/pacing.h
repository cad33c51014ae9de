#pragma once
// Decides how much a thread takes at a time and how far ahead of the consumer the pool works, from
// measured cost: a task should take about 100 us, so that the overhead of taking it is negligible,
// and the look-ahead should hold only a few tasks per thread.

#include <cstdint>
#include <functional>
#include <string>

namespace penstock {

/// Guarded by the owner's mutex.
class Pacing {
 public:
  struct Limits {
    unsigned threads = 1;
    std::uint64_t step_rows = 1;
    std::uint64_t step_bytes = 1;
    std::uint64_t bytes_max = UINT64_MAX;
    std::uint64_t steps_wished = 0;
    std::uint64_t rows_at_once = 0;  // rows that worker processes take at a time; 0: no processes
  };
  /// Receives a line for each change of the window, with the reason.
  using Decided = std::function<void(std::string)>;
  explicit Pacing(Limits limits, Decided decided = {});

  /// The target number of rows of a task.
  [[nodiscard]] std::uint64_t task_rows() const { return task_rows_; }
  /// The maximum number of steps in flight or waiting for the consumer; at least 1.
  [[nodiscard]] std::uint64_t window() const { return window_; }

  /// Records that a task of `rows` rows took `nanoseconds`; 0 if the clock did not advance. The
  /// window stays at `window_min` steps or more if the byte budget allows.
  void measured(std::uint64_t rows, std::uint64_t nanoseconds, std::uint64_t window_min = 0);
  /// Records the actual bytes of a step: texts and ragged fields are not in its layout.
  void measured_bytes(std::uint64_t bytes);
  /// The expected bytes of a step.
  [[nodiscard]] std::uint64_t step_bytes() const { return step_bytes_; }
  /// Keeps at least `rows` rows in flight, so that reads overlap.
  void read_ahead(std::uint64_t rows) { read_rows_ = rows; }
  /// Records that the consumer waited although the pool had stopped at the window.
  void consumer_waited();

  /// True if the bytes of batches, not the need for them, limit the window.
  [[nodiscard]] bool at_byte_limit() const {
    return window_ >= window_max_ && window_max_ < kWindowMax;
  }

 private:
  static constexpr std::uint64_t kWindowMax = 4096;
  void decide(std::uint64_t window, const char* reason);
  [[nodiscard]] std::uint64_t steps_within(std::uint64_t step_bytes) const;

  Limits limits_;
  double task_nanoseconds_;      // the target duration of a task
  std::uint64_t task_rows_min_;  // fewer would leave worker processes idle
  std::uint64_t step_bytes_;
  std::uint64_t window_max_;
  double row_cost_ = 0;  // nanoseconds, smoothed; 0 until measured
  std::uint64_t task_rows_;
  std::uint64_t window_ = 1;
  std::uint64_t read_rows_ = 0;
  std::uint64_t spare_ = 1;  // the window is this multiple of what the threads need
  Decided decided_;
};

}  // namespace penstock
