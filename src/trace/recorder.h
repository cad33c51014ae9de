#pragma once
// Counts what one run does, from counters that are always on: a few atomic additions per task and
// per call of an op. Threads that compute, the consumer and reports use it at the same time.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "penstock/clock.h"
#include "trace/histogram.h"
#include "trace/recording.h"
#include "trace/time_series.h"
#include "trace/trace.h"

namespace penstock::trace {

/// The totals of one op.
struct OpTotals {
  std::atomic<bool> used{false};  // after which `title` stays the same
  std::string title;
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint64_t> rows{0};
  std::atomic<std::uint64_t> bytes{0};
  // Of the calls that were measured:
  std::atomic<std::uint64_t> measured_rows{0};
  std::atomic<std::uint64_t> nanoseconds{0};
  std::atomic<std::uint64_t> lock{0};
  std::atomic<std::uint64_t> process{0};
  std::atomic<std::uint64_t> read{0};
  std::atomic<std::uint64_t> read_bytes{0};
  std::atomic<std::uint64_t> retry{0};
  // Of those whose CPU time was measured as well:
  std::atomic<std::uint64_t> cpu{0};
  std::atomic<std::uint64_t> cpu_of{0};
  std::atomic<std::int32_t> unmeasured{0};  // calls to pass over, since they are short
  std::atomic<std::uint32_t> last{0};       // nanoseconds of the last measured call
  Histogram durations;
};

/// How threads were occupied during a part of a wait.
struct WaitView {
  std::size_t busy = 0;   // threads that work on the run
  bool pulling = false;   // one of them pulls the stream, or computes the first sample
  bool at_limit = false;  // a thread could not begin another step
  bool at_bytes = false;  // because of the byte budget
};

/// A delivered step.
struct Delivered {
  std::uint64_t step = 0;
  std::uint64_t rows = 0;
  std::uint64_t now = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t window = 0;
  std::uint64_t step_bytes = 0;
  std::uint64_t budget_used = 0;
};

/// Names a sample by its id: "17 of source 0", and its file if there is one.
struct SampleName {
  std::string sample;
  std::string file;
};
using NameSample = std::function<SampleName(std::uint64_t)>;

/// Thread-safe unless noted.
class Recorder {
 public:
  static constexpr std::size_t kOpsMax = 64;  // later ones share the last entry
  static constexpr std::size_t kSlowMax = 16;

  Recorder(RunFacts facts, Clock& clock, NameSample name_sample);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  [[nodiscard]] std::uint32_t run() const { return run_; }
  [[nodiscard]] const RunFacts& facts() const { return facts_; }
  [[nodiscard]] Clock& clock() const { return clock_; }
  [[nodiscard]] bool real_time() const { return real_time_; }

  // Threads that compute
  OpTotals& op(const std::string& title);
  /// Records a call that was measured; `event` lacks the run and the op.
  void op_called(const OpTotals& totals, Event event);
  void task_ended(Kind kind, std::uint64_t step, std::uint64_t rows, Nanoseconds began,
                  Nanoseconds ended);
  void ready(std::uint64_t step, std::uint64_t rows, Nanoseconds began, Nanoseconds ended);
  void read(Nanoseconds began, Nanoseconds ended, std::uint64_t bytes, bool ahead);
  void retried(const std::string& what);
  void reads_ahead(unsigned threads, double latency_seconds);

  // The consumer
  void requested(Nanoseconds now);
  /// A part of a wait is over.
  void waiting(const WaitView& view, Nanoseconds began, Nanoseconds ended);
  void waited(std::uint64_t step, Nanoseconds began, Nanoseconds ended);
  void delivered(const Delivered& delivery);
  void skipped(std::uint64_t samples) { skipped_.fetch_add(samples, std::memory_order_relaxed); }
  void ended() { ended_.store(true, std::memory_order_relaxed); }
  /// The run was stopped, at its end or before.
  void left() { left_.store(true, std::memory_order_relaxed); }
  /// True from the first request to the end.
  [[nodiscard]] bool goes_on() const {
    const std::uint64_t steps = steps_.load(std::memory_order_relaxed);
    return requested_.load(std::memory_order_relaxed) > 0 &&
           !ended_.load(std::memory_order_relaxed) && !left_.load(std::memory_order_relaxed) &&
           !(facts_.end_step && facts_.first_step + steps >= *facts_.end_step);
  }

  // Strategies
  void replica(std::uint32_t number, const std::string& name, std::uint64_t step,
               std::uint64_t rows, Nanoseconds began, Nanoseconds ended, Nanoseconds all_ended);

  void decided(std::string text);

  [[nodiscard]] std::vector<DecisionRecord> decisions() const;
  /// By Event::op.
  [[nodiscard]] std::vector<std::string> op_titles() const;
  /// Everything but the events, which `events_of` has.
  [[nodiscard]] Recording totals() const;
  /// Everything so far. The times of events count from the start of the run.
  [[nodiscard]] Recording recording() const;
  /// When it began, by its clock.
  [[nodiscard]] std::uint64_t began() const { return began_; }

 private:
  [[nodiscard]] std::size_t index_of(const OpTotals& totals) const {
    return static_cast<std::size_t>(&totals - ops_.data());
  }
  void keep_if_slow(const OpTotals& totals, const Event& event);
  void note_run_delay(Nanoseconds now);
  void note_time(Nanoseconds now);
  [[nodiscard]] WaitRecord wait_record() const;
  [[nodiscard]] std::vector<OpRecord> op_records() const;

  const RunFacts facts_;
  Clock& clock_;
  const bool real_time_;
  const NameSample name_sample_;
  const std::uint32_t run_;
  const std::uint64_t began_;
  const std::uint64_t others_before_;  // work of the process when it began

  std::array<OpTotals, kOpsMax> ops_;
  std::atomic<std::uint64_t> tasks_{0};
  std::atomic<std::uint64_t> work_{0};
  std::atomic<std::uint64_t> pulled_{0};  // of it, pulling a stream
  std::atomic<std::uint64_t> run_delay_{0};
  std::atomic<std::uint64_t> reads_{0};
  std::atomic<std::uint64_t> read_bytes_{0};
  std::atomic<std::uint64_t> read_time_{0};
  std::atomic<unsigned> read_threads_{0};
  std::atomic<double> read_latency_{0};
  std::atomic<std::uint64_t> retried_{0};
  std::atomic<std::uint64_t> slow_enough_{0};  // nanoseconds of a call to be among the slowest
  std::atomic<std::uint64_t> skipped_{0};
  std::atomic<bool> ended_{false};
  std::atomic<bool> left_{false};

  // Written by the consumer alone
  std::atomic<std::uint64_t> requested_{0};  // the first time
  std::atomic<std::uint64_t> last_{0};       // the last delivery, or the end of a wait
  std::atomic<std::uint64_t> others_{0};     // work of other runs until then
  std::atomic<std::uint64_t> steps_{0};
  std::atomic<std::uint64_t> rows_{0};
  std::atomic<std::uint64_t> waits_{0};
  std::atomic<std::uint64_t> wait_time_{0};
  std::atomic<std::uint64_t> first_wait_{0};
  std::atomic<std::uint64_t> longest_{0};
  std::atomic<std::uint64_t> longest_step_{0};
  std::array<std::atomic<std::uint64_t>, 6> wait_parts_{};
  std::atomic<std::uint64_t> step_bytes_{0};
  std::atomic<std::uint64_t> window_{0};
  std::atomic<std::uint64_t> in_flight_max_{0};
  std::atomic<std::uint64_t> budget_max_{0};
  std::uint64_t waited_since_ = 0;  // the last delivery
  std::uint64_t worked_before_ = 0;
  std::uint64_t others_by_then_ = 0;
  TimeSeries series_;

  mutable Mutex mutex_;
  struct Slow {
    const OpTotals* op = nullptr;
    Event event;
  };
  std::vector<Slow> slow_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<std::string> retries_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<ReplicaRecord> replicas_ PENSTOCK_GUARDED_BY(mutex_);
  std::vector<DecisionRecord> decisions_ PENSTOCK_GUARDED_BY(mutex_);
};

/// The runs of this process that are not destroyed yet, oldest first.
std::vector<std::shared_ptr<Recorder>> live_runs();
/// Adds a run to them for as long as it exists.
void add_live_run(const std::shared_ptr<Recorder>& run);

}  // namespace penstock::trace
