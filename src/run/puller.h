#pragma once
// Pulls the steps of a stream. One thread at a time; others may help with rows that must be
// computed before the stream can continue.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "penstock/clock.h"
#include "plan/plan_data.h"
#include "run/gang.h"
#include "run/sequencer.h"
#include "run/step_in_flight.h"

namespace penstock {

struct PullerSettings {
  std::uint64_t pass = 0;
  std::uint64_t step = 0;           // the first
  StreamPlace from = {};            // where the stream continues
  unsigned threads = 0;             // that may help, at most
  bool skips = false;               // skip failed rows
  std::function<void()> wake = {};  // notifies other threads that there is work
};

class Puller {
 public:
  Puller(std::shared_ptr<const PlanData> plan, PullerSettings settings, Clock& clock);

  /// Pulls the next step; returns false at the end. A step that failed is ready, with its failure.
  bool pull(StepInFlight& step, const Context& context);
  /// Failures after the last step, when the stream has ended.
  [[nodiscard]] std::vector<Failure> take_left_over() { return std::exchange(left_over_, {}); }
  /// Stores a step until the shape of the batches is known.
  void keep(std::unique_ptr<StepInFlight> step) { kept_.push_back(std::move(step)); }
  [[nodiscard]] const StepInFlight& last_kept() const { return *kept_.back(); }
  /// The stored steps, in order.
  std::deque<std::unique_ptr<StepInFlight>> take_kept() { return std::exchange(kept_, {}); }
  /// The number of the step that `pull` pulls next.
  [[nodiscard]] std::uint64_t next_step() const { return step_; }

  // Thread-safe
  [[nodiscard]] bool wants_help() const { return gang_.wants_help(); }
  void help(const Context& context) { gang_.help(context); }

 private:
  const bool skips_;
  Clock& clock_;
  Sequencer sequencer_;
  PoolGang gang_;
  std::uint64_t position_;  // samples of the pass pulled so far
  std::uint64_t step_;
  std::deque<std::unique_ptr<StepInFlight>> kept_;
  std::vector<Failure> left_over_;
};

}  // namespace penstock
