#pragma once
// Opens steps and fills them with rows.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "penstock/clock.h"
#include "plan/plan_data.h"
#include "run/batch_shape.h"
#include "run/fetcher.h"
#include "run/run_settings.h"
#include "run/task.h"
#include "run/window.h"
#include "trace/recorder.h"

namespace penstock {

/// Thread-safe: each thread computes its own pieces.
class StepWorker final : public StepOpener {
 public:
  StepWorker(std::shared_ptr<const PlanData> plan, const RunStart& start,
             const RunSettings& settings, ShapeLearner& learner, Fetcher& fetcher, Clock& clock,
             trace::Recorder& recorder);

  /// Called once, before any step is opened.
  void set_shape(BatchShape shape);
  [[nodiscard]] bool has_shape() const { return shaped_.load(std::memory_order_acquire); }
  /// Without a layout until it is known.
  [[nodiscard]] BatchShape shape() const;

  void open(StepInFlight& step, std::uint64_t number) override;
  void open_pulled(StepInFlight& step) override;
  [[nodiscard]] bool reads_ahead() const override { return fetcher_.ahead(); }
  [[nodiscard]] std::uint64_t rows_ahead() const override { return fetcher_.rows_ahead(); }

  /// Computes the pieces of a task; returns their rows. Returns early if the task is cancelled.
  std::uint64_t work(Task& task, const Context& context);

 private:
  /// How many of the first pieces one call can compute: their rows are consecutive in one order.
  [[nodiscard]] std::size_t count_joinable(std::span<const Piece> pieces) const;
  static Result<void> compute_joined(const Program& program, std::span<const Piece> pieces,
                                     const Context& context);
  Result<void> compute(const Piece& piece, const Context& context);
  Result<void> compute_asked(StepInFlight& step, const Context& context);
  void finish(const Piece& piece, Result<void> done, Task& task);
  /// Batches may differ in size; batches of one size share a layout, so that slabs are reused.
  std::shared_ptr<const BatchLayout> layout_for(std::size_t rows);
  void queue_reads(StepInFlight& step);
  [[nodiscard]] Failure too_few_rows(const StepInFlight& step, std::size_t rows) const;

  const std::shared_ptr<const PlanData> plan_;
  const RunStart& start_;
  const RunSettings& settings_;
  ShapeLearner& learner_;
  Fetcher& fetcher_;
  Clock& clock_;
  trace::Recorder& recorder_;
  Scratch opening_;   // for `open`, which the window calls under its lock
  BatchShape shape_;  // written before `shaped_` is set
  std::atomic<bool> shaped_{false};
  Mutex mutex_;
  std::map<std::size_t, std::shared_ptr<const BatchLayout>> layouts_
      PENSTOCK_GUARDED_BY(mutex_);  // by rows, if sizes differ
};

}  // namespace penstock
