#include "run/pacing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace penstock {
namespace {

constexpr double kTaskNanoseconds = 100e3;
constexpr double kWorkerTaskNanoseconds = 1e6;  // a round trip to another process takes about 50 us
constexpr std::uint64_t kTaskRowsMax = 1 << 16;
constexpr std::uint64_t kTasksAhead = 4;  // per thread
constexpr std::uint64_t kSpareMax = 8;

std::uint64_t divide_up(std::uint64_t amount, std::uint64_t by) {
  return (amount + by - 1) / by;
}

}  // namespace

Pacing::Pacing(Limits limits, Decided decided)
    : limits_(limits),
      task_nanoseconds_(limits.rows_at_once > 0 ? kWorkerTaskNanoseconds : kTaskNanoseconds),
      // One row for each worker process that this thread keeps busy, and one more in the queue.
      task_rows_min_(std::max<std::uint64_t>(
          1, 2 * divide_up(limits.rows_at_once, std::max(1U, limits.threads)))),
      step_bytes_(limits.step_bytes),
      window_max_(steps_within(limits.step_bytes)),
      // Until a cost is known, a step is split over all threads, for an early first batch.
      task_rows_(std::max<std::uint64_t>(
          task_rows_min_, divide_up(limits.step_rows, 4ULL * std::max(1U, limits.threads)))),
      decided_(std::move(decided)) {
  decide(std::max<std::uint64_t>(limits_.steps_wished, limits_.threads + 1ULL), "start");
}

void Pacing::decide(std::uint64_t window, const char* reason) {
  window = std::clamp<std::uint64_t>(window, 1, window_max_);
  if (window == window_) return;
  window_ = window;
  if (decided_)
    decided_(fmt::format("{} steps ahead, {} rows a task: {}", window_, task_rows_, reason));
}

std::uint64_t Pacing::steps_within(std::uint64_t step_bytes) const {
  return std::clamp<std::uint64_t>(limits_.bytes_max / std::max<std::uint64_t>(1, step_bytes), 1,
                                   kWindowMax);
}

void Pacing::measured_bytes(std::uint64_t bytes) {
  // Grow at once, since the memory is already in use; shrink slowly, since sizes vary.
  step_bytes_ = bytes >= step_bytes_ ? bytes : step_bytes_ - (step_bytes_ - bytes) / 8;
  step_bytes_ = std::max(step_bytes_, limits_.step_bytes);
  window_max_ = steps_within(step_bytes_);
  if (window_ > window_max_) decide(window_max_, "as many steps as the bytes for them allow");
}

void Pacing::measured(std::uint64_t rows, std::uint64_t nanoseconds, std::uint64_t window_min) {
  if (rows == 0 || nanoseconds == 0) return;
  const double cost = static_cast<double>(nanoseconds) / static_cast<double>(rows);
  row_cost_ = row_cost_ == 0 ? cost : 0.9 * row_cost_ + 0.1 * cost;
  const auto fitting = static_cast<std::uint64_t>(task_nanoseconds_ / row_cost_);
  // Ignore small changes of cost, so that the pace settles.
  if (fitting > task_rows_ + task_rows_ / 2 || fitting < task_rows_ / 2)
    task_rows_ = std::clamp<std::uint64_t>(fitting, task_rows_min_, kTaskRowsMax);
  const std::uint64_t rows_ahead = kTasksAhead * limits_.threads * task_rows_;
  const std::uint64_t needed = std::max<std::uint64_t>(
      {limits_.threads + 1ULL, limits_.steps_wished, divide_up(rows_ahead, limits_.step_rows),
       divide_up(read_rows_, limits_.step_rows)});
  const std::uint64_t wanted = std::max(needed * spare_, window_min);
  if (wanted > window_ || wanted * 4 < window_)
    decide(wanted, "tasks of about 100 us, four ahead for each thread");
}

void Pacing::consumer_waited() {
  if (spare_ >= kSpareMax || window_ >= window_max_) return;
  spare_ *= 2;
  decide(window_ * 2, "the consumer waited while the pool had stopped at the window");
}

}  // namespace penstock
