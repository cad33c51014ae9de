#pragma once
// The steps in flight: opened in order, computed oldest first by any idle thread, delivered in
// order. A slow sample delays only its own step.

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/pool.h"
#include "penstock/clock.h"
#include "run/pacing.h"
#include "run/step_in_flight.h"
#include "run/task.h"
#include "trace/recorder.h"

namespace penstock {

/// Prepares steps for the window; called under its lock unless noted.
class StepOpener {
 public:
  virtual ~StepOpener() = default;
  /// Opens `step` as step `number`: allocates its shares and counts its missing rows.
  virtual void open(StepInFlight& step, std::uint64_t number) = 0;
  /// The same for a pulled step; called without the lock.
  virtual void open_pulled(StepInFlight& step) = 0;
  /// True if steps should be opened before threads reach them, so that reads can start.
  [[nodiscard]] virtual bool reads_ahead() const = 0;
  /// Rows that should be in flight for reads to overlap.
  [[nodiscard]] virtual std::uint64_t rows_ahead() const = 0;
};

struct WindowSettings {
  unsigned threads = 0;     // 0: compute on the consumer's thread
  std::uint64_t first = 0;  // step
  std::uint64_t end = 0;    // one past the last step
  bool stream = false;      // steps are published by the puller; the end is unknown
  StepSettings step = {};
  std::function<bool()> wants_help = {};  // whether a thread that pulls needs help
  Pacing::Decided decided = {};
};

class Window {
 public:
  Window(WindowSettings settings, StepOpener& opener, Clock& clock);

  /// Called when the shape of batches is known: steps can be opened. `step_rows` counts all local
  /// shares.
  void begin(const Pacing::Limits& limits, std::uint64_t step_rows);
  /// Lets threads of `pool` work on it: they are woken when there is work.
  void attach(Pool* pool);
  void wake();

  // Pool threads
  /// Finds work; returns false if there is none.
  bool begin_task(Task& task);
  void end_task(Task& task, std::uint64_t rows);
  /// Called if the task ended with an exception, which is an internal error or a lack of resources.
  void break_task(Task& task, std::exception_ptr error);

  // The thread that pulls a stream
  /// Returns a step to pull into, which becomes step `number`.
  [[nodiscard]] std::unique_ptr<StepInFlight> spare_for(Task& task, std::uint64_t number);
  /// Publishes a pulled step to all threads; the shape of batches must be known. Returns its local
  /// rows.
  std::uint64_t publish(std::unique_ptr<StepInFlight> step);
  /// No step follows the published ones.
  void end_stream();
  /// True if the thread that pulled should continue; wakes others if the consumer waits.
  bool pull_on();

  // The consumer
  enum class Awaited : std::uint8_t { step, ready_step };
  enum class Found : std::uint8_t { nothing, awaited, end };
  /// Throws CancelledError if stopped, or the exception that broke a task.
  [[nodiscard]] Found look(Awaited awaited) const;
  /// Waits for `awaited`, at most for `pause`; returns false if it is not available. Writes to
  /// `view` how threads are occupied meanwhile.
  bool wait(Awaited awaited, Nanoseconds pause, trace::WaitView& view);
  /// Moves the leading ready steps to `ready`, and recycles the `spent` ones.
  void take_ready(std::deque<std::unique_ptr<StepInFlight>>& ready,
                  std::vector<std::unique_ptr<StepInFlight>>& spent);
  /// Counts a step as delivered, which makes room for another.
  void count_delivered();
  /// Steps of the pass that the consumer has received, including earlier runs.
  [[nodiscard]] std::uint64_t delivered() const { return delivered_.load(); }
  [[nodiscard]] std::uint64_t in_flight() const {
    return opened_.load(std::memory_order_relaxed) - delivered_.load();
  }
  /// The most steps that may be in flight.
  [[nodiscard]] std::uint64_t size() const { return size_.load(std::memory_order_relaxed); }
  void stop();

  /// Calls `body(steps, tasks)` with all steps in flight and the running tasks, under the lock.
  template <typename Body>
  auto inspect(Body body) const {
    Lock lock(mutex_);
    return body(steps_, std::span<const Task* const>(tasks_));
  }

 private:
  [[nodiscard]] Found find(Awaited awaited) const PENSTOCK_REQUIRES(mutex_);
  bool choose_task(Task& task) PENSTOCK_REQUIRES(mutex_);
  bool claim(std::vector<Piece>& pieces) PENSTOCK_REQUIRES(mutex_);
  bool open_step() PENSTOCK_REQUIRES(mutex_);
  [[nodiscard]] std::unique_ptr<StepInFlight> spare() PENSTOCK_REQUIRES(mutex_);
  [[nodiscard]] bool may_pull() const PENSTOCK_REQUIRES(mutex_);
  /// Wakes sleeping threads. Does nothing after a stop: an abandoned thread may return when the
  /// pool is gone.
  void wake_if_starved() PENSTOCK_REQUIRES(mutex_);

  const WindowSettings settings_;
  StepOpener& opener_;
  Clock& clock_;
  Pool* pool_ = nullptr;

  std::atomic<std::uint64_t> opened_;
  std::atomic<std::uint64_t> delivered_;
  std::atomic<bool> starved_{false};  // a thread found the window full
  std::atomic<std::uint64_t> size_{1};
  std::atomic<std::uint64_t> step_bytes_{0};  // expected bytes of a step

  mutable Mutex mutex_;
  Condition changed_;
  std::deque<std::unique_ptr<StepInFlight>> steps_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<StepInFlight>> spare_ PENSTOCK_GUARDED_BY(mutex_);
  struct Unclaimed {
    std::size_t step = 0;  // index in steps_
    std::size_t share = 0;
    std::uint64_t row = 0;
  };
  Unclaimed next_ PENSTOCK_GUARDED_BY(mutex_);  // the first unclaimed row
  Pacing pacing_ PENSTOCK_GUARDED_BY(mutex_);
  std::uint64_t step_rows_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::vector<Task*> tasks_ PENSTOCK_GUARDED_BY(mutex_);  // running tasks
  bool begun_ PENSTOCK_GUARDED_BY(mutex_) = false;
  bool alone_ PENSTOCK_GUARDED_BY(mutex_) = false;  // a thread pulls, or learns the shape
  bool ended_ PENSTOCK_GUARDED_BY(mutex_) = false;  // the stream
  bool consumer_waits_ PENSTOCK_GUARDED_BY(mutex_) = false;
  bool stopped_ PENSTOCK_GUARDED_BY(mutex_) = false;
  std::exception_ptr broken_ PENSTOCK_GUARDED_BY(mutex_);
};

}  // namespace penstock
