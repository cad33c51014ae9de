#pragma once
// One pass of a plan on the pool. Connects its parts: the window of steps in flight, the worker
// that fills steps with rows, the puller of a stream, the learner of the batch shape, and the
// consumer.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/pool.h"
#include "run/batch_shape.h"
#include "run/consumer.h"
#include "run/fetcher.h"
#include "run/puller.h"
#include "run/run_settings.h"
#include "run/step_worker.h"
#include "run/window.h"
#include "trace/recorder.h"

namespace penstock {

/// `next` is called by one thread; `stop` is thread-safe. Destroy after `stop`.
class Pass final : public Work {
 public:
  /// If `shape` has no layout, it is learned from the first sample.
  Pass(std::shared_ptr<const PlanData> plan, BatchShape shape, RunStart start,
       const RunSettings& settings);
  ~Pass() override;

  /// Returns the next step, or nothing after the last. Throws SampleError (the step is not
  /// delivered), or CancelledError if stopped.
  std::optional<StepBatches> next();
  /// Returns the next step if it is ready and nothing in it failed. Never blocks or throws. If
  /// failures are skipped it returns nothing: a full ledger would have to throw.
  std::optional<StepBatches> next_if_ready() { return consumer_.next_if_ready(); }
  /// True if another step follows; for a stream, blocks until that is known.
  bool has_next() { return consumer_.has_next(); }
  /// The same, or nothing if it is not known within `patience`. Without threads the pass pulls
  /// until it is known.
  std::optional<bool> has_next_within(Nanoseconds patience) {
    return consumer_.has_next_within(patience);
  }
  /// The position of the stream after the delivered steps; `next` only after `has_next`.
  [[nodiscard]] StreamPlace stream_place() const { return consumer_.stream_place(); }
  /// Wakes a waiting `next`, takes no more work and returns when no thread is inside, or after half
  /// a second: threads still inside a function are then abandoned and reported.
  void stop(Pool* pool);
  /// Adds the pass to the pool; `self` is this.
  static void start(const std::shared_ptr<Pass>& self, Pool& pool);

  bool run_one() override;

  /// Steps of the pass that the consumer has received, including earlier runs.
  [[nodiscard]] std::uint64_t delivered() const { return window_.delivered(); }
  [[nodiscard]] bool stopped() const { return consumer_.stopped(); }
  [[nodiscard]] const std::shared_ptr<trace::Recorder>& recorder() const { return recorder_; }
  /// The shape of its batches, if it is known.
  [[nodiscard]] BatchShape shape() const { return worker_.shape(); }

 private:
  void set_shape(BatchShape shape);
  std::uint64_t run_task(Task& task);
  std::uint64_t pull_steps(Task& task, const Context& context);
  /// Publishes the pulled steps to all threads; returns their rows.
  std::uint64_t publish_kept();
  void report_abandoned(unsigned threads) const;

  const std::shared_ptr<const PlanData> plan_;
  const RunStart start_;
  const RunSettings settings_;
  Clock& clock_;
  const std::shared_ptr<trace::Recorder> recorder_;
  ScratchStock scratch_;
  ShapeLearner learner_;
  Fetcher fetcher_;
  StepWorker worker_;
  Puller puller_;
  Window window_;
  Consumer consumer_;
};

}  // namespace penstock
