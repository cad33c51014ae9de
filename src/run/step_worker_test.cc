#include "run/step_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "run/plan_for_tests.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

/// A worker without a window: a test opens steps and passes pieces of them.
class Working {
 public:
  explicit Working(const Dataset& dataset, Shares shares = {}, Ledger* ledger = nullptr)
      : plan(testing::plan_of(dataset, shares)),
        start{0, 0, plan->geometry, {}},
        settings(settings_of(ledger)),
        learner(plan, {"", 0, ledger != nullptr, {16, shares.count, nullptr}}),
        fetcher({&Io::real(), &Clock::real(), std::make_shared<ReadPace>(), &ByteBudget::process(),
                 UINT64_MAX}),
        worker(plan, start, settings, learner, fetcher, Clock::real(), recorder),
        step({.shares = shares, .skips = ledger != nullptr}) {
    worker.set_shape(make_batch_shape(plan->program.spec, {16, shares.count, nullptr}));
  }
  static RunSettings settings_of(Ledger* ledger) {
    RunSettings settings;
    settings.ledger = ledger;
    return settings;
  }
  std::uint64_t run(Task& task) { return worker.work(task, {scratch, fetcher, &task.activity}); }
  /// Opens step `number` and computes all of it.
  void compute(std::uint64_t number) {
    worker.open(step, number);
    Task task;
    if (step.asked() != nullptr || step.whole()) {
      task.pieces.push_back({&step, 0, 0, step.rows_here(), true});
    } else {
      for (std::size_t i = 0; i < step.shares().size(); ++i)
        task.pieces.push_back({&step, i, 0, step.shares()[i].rows, false});
    }
    run(task);
  }
  std::vector<std::int64_t> values() {
    std::vector<std::int64_t> all;
    for (const Batch& batch : step.take_batches())
      for (const std::int64_t x : batch.values<std::int64_t>()) all.push_back(x);
    return all;
  }

  std::shared_ptr<const PlanData> plan;
  RunStart start;
  RunSettings settings;
  ShapeLearner learner;
  Fetcher fetcher;
  trace::Recorder recorder{{}, Clock::real(), {}};
  StepWorker worker;
  StepInFlight step;
  Scratch scratch;
};

using Values = std::vector<std::int64_t>;

TEST(StepWorkerTest, TheShapeIsUnknownUntilItIsSet) {
  Working working(Dataset::range(10).batch(4));
  StepWorker worker(working.plan, working.start, working.settings, working.learner, working.fetcher,
                    Clock::real(), working.recorder);
  EXPECT_FALSE(worker.has_shape());
  EXPECT_EQ(worker.shape().layout, nullptr);
  worker.set_shape(testing::shape_of_numbers(4));
  EXPECT_TRUE(worker.has_shape());
  EXPECT_NE(worker.shape().layout, nullptr);
}

TEST(StepWorkerTest, AStepContainsTheRowsAtItsPosition) {
  Working working(Dataset::range(10).batch(4));
  working.compute(2);
  EXPECT_TRUE(working.step.ready());
  EXPECT_EQ(working.values(), (Values{8, 9}));
  working.compute(1);
  EXPECT_EQ(working.values(), (Values{4, 5, 6, 7}));
}

TEST(StepWorkerTest, EachLocalShareContainsItsOwnRows) {
  Working working(Dataset::range(20).batch(10), Shares{3, 1, 2});
  working.compute(1);
  EXPECT_EQ(working.values(), (Values{14, 15, 16, 17, 18, 19}));
}

TEST(StepWorkerTest, AStepIsReadyAfterItsLastPiece) {
  Working working(Dataset::range(20).batch(10));
  working.worker.open(working.step, 0);
  for (const std::uint64_t first : {5U, 0U}) {
    EXPECT_FALSE(working.step.ready());
    Task task;
    task.pieces.push_back({&working.step, 0, first, 5, false});
    EXPECT_EQ(working.run(task), 5U);
    EXPECT_EQ(task.step_bytes > 0, first == 0) << "of the step it completed";
  }
  EXPECT_TRUE(working.step.ready());
  EXPECT_EQ(working.values(), (Values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(StepWorkerTest, ACancelledTaskComputesNothing) {
  Working working(Dataset::range(20).batch(10));
  working.worker.open(working.step, 0);
  Task task;
  task.pieces.push_back({&working.step, 0, 0, 10, false});
  task.activity.cancelled = true;
  EXPECT_EQ(working.run(task), 0U);
  EXPECT_FALSE(working.step.ready());
}

TEST(StepWorkerTest, TheFailureOfAStepIsThatOfItsFirstFailedRow) {
  Working working(Dataset::range(20)
                      .map([](std::int64_t x) -> std::int64_t {
                        if (x % 10 == 3 || x % 10 == 7) throw std::runtime_error("bad value");
                        return x;
                      })
                      .batch(10));
  working.worker.open(working.step, 1);
  Task task;
  task.pieces.push_back({&working.step, 0, 5, 5, false});
  task.pieces.push_back({&working.step, 0, 0, 5, false});
  working.run(task);
  EXPECT_TRUE(working.step.ready());
  const auto failure = working.step.take_failure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->row, 3U);
  EXPECT_EQ(failure->where.sample->number, 13U);
}

TEST(StepWorkerTest, SkippedRowsAreCollectedInTheirStep) {
  Ledger ledger("", 100);
  Working working(Dataset::range(20)
                      .map([](std::int64_t x) -> std::int64_t {
                        if (x == 3) throw std::runtime_error("bad value");
                        return x;
                      })
                      .batch(5),
                  {}, &ledger);
  working.compute(0);
  EXPECT_FALSE(working.step.has_failed());
  EXPECT_EQ(working.step.failures.take().size(), 1U);
  EXPECT_EQ(working.values(), (Values{0, 1, 2, 4}));
}

TEST(StepWorkerTest, AFunctionOfWholeBatchesReceivesTheStepOnce) {
  std::atomic<int> calls{0};
  Working working(Dataset::range(20).batch(10).map(
      [&calls](const Sample& batch) {
        ++calls;
        return batch;
      },
      {.spec = ElementSpec::single(Dtype::i64)}));
  working.compute(1);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(working.values(), (Values{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}));
}

/// Batch i has i + 1 rows of the number i.
class GrowingSequence final : public Sequence {
 public:
  [[nodiscard]] std::uint64_t size() const override { return 4; }
  Sample get(std::uint64_t index) override {
    return Sample(Tensor::of(std::vector<std::int64_t>(index + 1, std::int64_t(index))));
  }
};

Dataset growing() {
  SequenceOptions options;
  options.spec = ElementSpec::single(Dtype::i64);
  return Dataset::from_sequence(std::make_shared<GrowingSequence>(), options);
}

TEST(StepWorkerTest, ABatchOfASequenceIsCutWhenItArrives) {
  Working working(growing());
  for (const std::uint64_t number : {0U, 3U, 1U}) {
    working.compute(number);
    EXPECT_TRUE(working.step.ready());
    EXPECT_EQ(working.values(), Values(number + 1, std::int64_t(number)));
  }
}

TEST(StepWorkerTest, ABatchWithFewerRowsThanProcessesFailsIfNoShareMayBeEmpty) {
  Working working(growing(), Shares{3, 0, 1});
  working.settings.no_empty_share = true;
  working.compute(1);
  const auto failure = working.step.take_failure();
  ASSERT_TRUE(failure);
  EXPECT_THAT(failure->message, HasSubstr("get(1) returned 2 rows for 3 processes"));
  working.compute(2);
  EXPECT_FALSE(working.step.has_failed());
}

TEST(StepWorkerTest, APulledStepLargerThanTheLayoutGetsItsOwnMemory) {
  Working working(Dataset::range(100).filter([](std::int64_t) { return true; }).batch(40));
  working.step.open_pulled(0, 0);
  working.step.set_place(testing::rows_at(0, 40));
  working.worker.open_pulled(working.step);
  EXPECT_EQ(working.step.rows_here(), 40U);
  EXPECT_EQ(working.step.shares()[0].batch->layout().rows_max, 40U);
  working.step.open_pulled(1, 40);
  working.step.set_place(testing::rows_at(0, 16));
  working.worker.open_pulled(working.step);
  EXPECT_EQ(&working.step.shares()[0].batch->layout(), working.worker.shape().layout.get());
}

}  // namespace
}  // namespace penstock
