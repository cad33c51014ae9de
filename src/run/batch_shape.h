#pragma once
// The shape of the batches of a pass, and the ring that allocates them. Known before the pass, or
// learned from the first sample that can be computed.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "order/geometry.h"
#include "plan/failures.h"
#include "plan/plan_data.h"
#include "run/step_in_flight.h"
#include "sample/batch_data.h"
#include "source/sequence.h"

namespace penstock {

struct BatchShape {
  std::shared_ptr<const BatchLayout> layout;  // null: unknown
  std::shared_ptr<BatchRing> ring;
};

struct ShapeLimits {
  std::size_t rows_max = 1;  // of a share
  std::size_t shares = 1;    // in this process
  std::shared_ptr<Allocator> allocator = {};
};

/// With `learned` the sizes are those of one sample; see BatchLayout.
BatchShape make_batch_shape(ElementSpec spec, const ShapeLimits& limits,
                            std::shared_ptr<OpenSizes> learned = nullptr);

struct LearnSettings {
  std::string dataset;  // its name, for errors
  std::uint64_t pass = 0;
  bool skips = false;  // skip failed rows
  ShapeLimits limits;
};

/// Computes rows until one shows the fields of a batch. The computed rows are stored and written to
/// their step later, so that no function is called twice for them.
/// One thread learns. Once the shape is known the other functions may be called from any thread,
/// for different steps.
class ShapeLearner {
 public:
  ShapeLearner(std::shared_ptr<const PlanData> plan, LearnSettings settings)
      : plan_(std::move(plan)), settings_(std::move(settings)) {}

  /// Learns from steps [first, end). If no sample can be computed at all, the batches have no
  /// fields, and the next epoch tries again. Throws SampleError if failures are not skipped, or if
  /// the first 100,000 samples show no fields.
  BatchShape learn(const Geometry& geometry, std::uint64_t first, std::uint64_t end,
                   const Context& context);
  /// Learns from one step of a stream; returns nothing if none of its rows can be computed.
  std::optional<BatchShape> learn_from_stream(const StepInFlight& step, const Context& context);
  [[nodiscard]] BatchShape without_fields() const;

  /// Writes the learned rows, which are the first local rows of the step. Returns how many.
  std::uint64_t write_rows(StepInFlight& step) const;
  /// Writes a learned whole step; returns false if it was not computed before.
  bool write_step(StepInFlight& step);
  /// The learned batch of a Sequence.
  [[nodiscard]] std::optional<SequenceBatch> take_batch(std::uint64_t step);

 private:
  struct LearnedRow {
    std::uint64_t sample_id = 0;
    std::uint8_t flag = kRowGood;
    Sample sample = {};
    std::optional<Failure> failure = {};
  };
  struct LearnedStep;
  using LearnedSteps = std::map<std::uint64_t, std::shared_ptr<LearnedStep>>;
  enum class Owner : std::uint8_t { us, another };

  const BlockView* rows_to_learn_from(std::uint64_t step, Place& place, const Context& context);
  std::optional<BatchShape> learn_from(std::uint64_t step, const Place& place,
                                       const BlockView* given, const Context& context);
  std::optional<BatchShape> learn_from_others(std::uint64_t step, const Place& place,
                                              const BlockView* given, std::uint64_t& tries,
                                              const Context& context);
  std::optional<BatchShape> learn_from_past(const Geometry& geometry, std::uint64_t first,
                                            std::uint64_t tries, const Context& context);
  std::optional<BatchShape> learn_row(std::uint64_t step, const Place& place, std::uint64_t row,
                                      const BlockView* given, Owner owner, const Context& context);
  std::optional<BatchShape> learn_step(std::uint64_t step, const Place& place,
                                       const BlockView* given, const Context& context);
  void keep(std::uint64_t step, LearnedRow row);
  bool fails_later(const Failure& failure, std::uint64_t step);
  /// Throws SampleError after too many rows that showed no fields.
  void count_searched(std::uint64_t rows, std::uint64_t step);
  [[noreturn]] void raise_at(Failure failure, std::uint64_t step) const;

  const std::shared_ptr<const PlanData> plan_;
  const LearnSettings settings_;
  std::map<std::uint64_t, std::vector<LearnedRow>> rows_;  // by step
  std::size_t row_count_ = 0;
  std::uint64_t searched_ = 0;
  std::uint64_t first_step_ = 0;  // of those to learn from
  bool later_failure_ = false;    // a sample of a later step failed
  std::string last_failure_;
  LearnedSteps steps_;
  Mutex mutex_;
  std::map<std::uint64_t, SequenceBatch> batches_ PENSTOCK_GUARDED_BY(mutex_);  // by step
};

}  // namespace penstock
