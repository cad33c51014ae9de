#pragma once
// The consumer's side of a pass: waits for the next step, takes it, and records its failures.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "penstock/clock.h"
#include "plan/plan_data.h"
#include "run/run_settings.h"
#include "run/sequencer.h"
#include "run/stall.h"
#include "run/window.h"
#include "trace/recorder.h"

namespace penstock {

/// Called from one thread; `stop` and `stopped` are thread-safe.
class Consumer {
 public:
  /// `work` runs one task of the pass on the consumer's thread, if it must compute itself; returns
  /// false if there is none.
  Consumer(std::shared_ptr<const PlanData> plan, const RunStart& start, const RunSettings& settings,
           Window& window, std::function<bool()> work, Clock& clock, trace::Recorder& recorder);

  /// Returns the next step, or nothing after the last.
  std::optional<StepBatches> next();
  std::optional<StepBatches> next_if_ready();
  bool has_next();
  std::optional<bool> has_next_within(Nanoseconds patience);
  [[nodiscard]] StreamPlace stream_place() const;
  /// Adds the skipped samples of a step to the ledger, if there is one.
  void write_ledger(std::uint64_t step, const std::vector<Failure>& failures);

  void stop() { stopped_ = true; }
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  enum class Outcome : std::uint8_t { there, end, late };
  Outcome await(Window::Awaited awaited, std::optional<Nanoseconds> until = std::nullopt);
  /// Calls `while_waiting` every 50 ms; throws what it throws.
  void look_up(Nanoseconds& looked);
  void report_stall(Nanoseconds waited) const;
  StepBatches deliver_first();
  [[noreturn]] void raise(Failure failure, const StepInFlight& step) const;

  const std::shared_ptr<const PlanData> plan_;
  const RunStart& start_;
  const RunSettings& settings_;
  const std::uint64_t end_;  // one past the last step; unknown for a stream
  const bool stream_;
  Window& window_;
  const std::function<bool()> work_;
  Clock& clock_;
  trace::Recorder& recorder_;
  std::deque<std::unique_ptr<StepInFlight>> ready_;
  std::vector<std::unique_ptr<StepInFlight>> spent_;  // to be reused
  StreamPlace reached_;                               // for a stream: the position after the last
                                                      // delivered step
  bool requested_ = false;
  std::atomic<bool> stopped_{false};
};

}  // namespace penstock
