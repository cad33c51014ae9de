#pragma once
// The steps in flight: opened in order, their rows handed out oldest first to whichever thread is
// free, delivered in order. One slow sample holds up its own step only.

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

namespace penstock {

/// Prepares steps for the window; called under its lock where nothing else is said.
class StepOpener {
 public:
  virtual ~StepOpener() = default;
  /// Makes `step` the step `number`: its shares have memory, and its missing rows are known.
  virtual void open(StepInFlight& step, std::uint64_t number) = 0;
  /// The same for a step that was pulled; called without the lock.
  virtual void open_pulled(StepInFlight& step) = 0;
  /// True when steps should be opened before anybody works on them, so that reads can start.
  [[nodiscard]] virtual bool reads_ahead() const = 0;
  /// Rows that should be in flight for reads to overlap.
  [[nodiscard]] virtual std::uint64_t rows_ahead() const = 0;
};

struct WindowSettings {
  unsigned threads = 0;     // 0: everything in the consumer's thread
  std::uint64_t first = 0;  // step
  std::uint64_t end = 0;    // first step that does not exist
  bool stream = false;      // steps are published by who pulls them; nobody knows the end
  StepSettings step = {};
  std::function<bool()> wants_help = {};  // whether a thread that pulls wants help
  std::shared_ptr<Pacing::Log> log = std::make_shared<Pacing::Log>();
};

class Window {
 public:
  Window(WindowSettings settings, StepOpener& opener, Clock& clock);

  /// The shape of batches is known: steps can be opened. `step_rows` are those of all local shares.
  void begin(const Pacing::Limits& limits, std::uint64_t step_rows);
  /// Threads of `pool` work on it: they are woken when there is work.
  void attach(Pool* pool);
  void wake();

  // Threads at work
  /// Finds something to do; false when there is nothing.
  bool begin_task(Task& task);
  void end_task(Task& task, std::uint64_t rows);
  /// The task ended by an exception, which is a fault of ours or of the machine.
  void break_task(Task& task, std::exception_ptr error);

  // The thread that pulls a stream
  /// A step to pull into; it will be step `number`.
  [[nodiscard]] std::unique_ptr<StepInFlight> spare_for(Task& task, std::uint64_t number);
  /// Gives a step that was pulled to all threads; the shape of batches must be known.
  /// Returns its local rows.
  std::uint64_t publish(std::unique_ptr<StepInFlight> step);
  /// No step follows those that were published.
  void end_stream();
  /// True when the thread that pulled should pull on; wakes others where the consumer waits.
  bool pull_on();

  // The consumer
  enum class Awaited : std::uint8_t { step, ready_step };
  enum class Found : std::uint8_t { nothing, awaited, end };
  /// Throws CancelledError when stopped, or what broke a task.
  [[nodiscard]] Found look(Awaited awaited) const;
  /// Waits until `awaited` may be there, or for `pause`; false when it is not there.
  bool wait(Awaited awaited, Nanoseconds pause);
  /// Moves the steps that are ready, up to the first that is not, to `ready`, and takes back
  /// `spent` ones.
  void take_ready(std::deque<std::unique_ptr<StepInFlight>>& ready,
                  std::vector<std::unique_ptr<StepInFlight>>& spent);
  /// A step goes to the consumer: there is room for another.
  void count_delivered();
  /// Steps of the pass that the consumer has received, earlier runs included.
  [[nodiscard]] std::uint64_t delivered() const { return delivered_.load(); }
  void stop();

  /// Calls `body(steps, tasks)` with all steps in flight and the threads at work, under the lock.
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
  /// For threads that sleep. Not once it is stopped: a thread that was abandoned then comes back
  /// when the pool may be gone.
  void wake_if_starved() PENSTOCK_REQUIRES(mutex_);
  [[nodiscard]] std::uint64_t in_flight() const {
    return opened_.load(std::memory_order_relaxed) - delivered_.load();
  }

  const WindowSettings settings_;
  StepOpener& opener_;
  Clock& clock_;
  Pool* pool_ = nullptr;

  std::atomic<std::uint64_t> opened_;
  std::atomic<std::uint64_t> delivered_;
  std::atomic<bool> starved_{false};  // a thread found the window full
  std::atomic<std::uint64_t> size_{1};
  std::atomic<std::uint64_t> step_bytes_{0};  // that a step is expected to take

  mutable Mutex mutex_;
  Condition changed_;
  std::deque<std::unique_ptr<StepInFlight>> steps_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<StepInFlight>> spare_ PENSTOCK_GUARDED_BY(mutex_);
  struct Unclaimed {
    std::size_t step = 0;  // index in steps_
    std::size_t share = 0;
    std::uint64_t row = 0;
  };
  Unclaimed next_ PENSTOCK_GUARDED_BY(mutex_);  // the first row that no thread has
  Pacing pacing_ PENSTOCK_GUARDED_BY(mutex_);
  std::uint64_t step_rows_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::vector<Task*> tasks_ PENSTOCK_GUARDED_BY(mutex_);  // threads at work
  bool begun_ PENSTOCK_GUARDED_BY(mutex_) = false;
  bool alone_ PENSTOCK_GUARDED_BY(mutex_) = false;  // somebody pulls, or learns the shape
  bool ended_ PENSTOCK_GUARDED_BY(mutex_) = false;  // the stream
  bool consumer_waits_ PENSTOCK_GUARDED_BY(mutex_) = false;
  bool stopped_ PENSTOCK_GUARDED_BY(mutex_) = false;
  std::exception_ptr broken_ PENSTOCK_GUARDED_BY(mutex_);
};

}  // namespace penstock
