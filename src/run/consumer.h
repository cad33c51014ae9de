#pragma once
// The consumer's side of a pass: waiting for the next step, taking it, and recording what failed in
// it.

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

namespace penstock {

/// One thread calls it; `stop` and `stopped` are for any.
class Consumer {
 public:
  /// `work` does one task of the pass, where the consumer's thread has to; false when there is
  /// none.
  Consumer(std::shared_ptr<const PlanData> plan, const RunStart& start, const RunSettings& settings,
           Window& window, std::function<bool()> work, Clock& clock, std::uint32_t trace_run);

  /// The next step, or nothing after the last.
  std::optional<StepBatches> next();
  std::optional<StepBatches> next_if_ready();
  bool has_next();
  std::optional<bool> has_next_within(Nanoseconds patience);
  [[nodiscard]] StreamPlace stream_place() const;
  /// Adds the samples that were skipped in a step to the ledger, if there is one.
  void write_ledger(std::uint64_t step, const std::vector<Failure>& failures);

  void stop() { stopped_ = true; }
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  enum class Outcome : std::uint8_t { there, end, late };
  Outcome await(Window::Awaited awaited, std::optional<Nanoseconds> until = std::nullopt);
  /// Lets whoever owns the waiting thread look, every 50 ms; throws what that throws.
  void look_up(Nanoseconds& looked);
  void report_stall(Nanoseconds waited) const;
  StepBatches deliver_first();
  [[noreturn]] void raise(Failure failure, const StepInFlight& step) const;

  const std::shared_ptr<const PlanData> plan_;
  const RunStart& start_;
  const RunSettings& settings_;
  const std::uint64_t end_;  // first step that does not exist; of a stream nobody knows yet
  const bool stream_;
  Window& window_;
  const std::function<bool()> work_;
  Clock& clock_;
  const std::uint32_t trace_run_;
  std::deque<std::unique_ptr<StepInFlight>> ready_;
  std::vector<std::unique_ptr<StepInFlight>> spent_;  // to be used again
  StreamPlace reached_;                               // of a stream: after the step delivered last
  std::atomic<bool> stopped_{false};
};

}  // namespace penstock
