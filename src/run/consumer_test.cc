#include "run/consumer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "base/cancelled.h"
#include "penstock/error.h"
#include "run/plan_for_tests.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

/// A clock that advances by `tick` at each call.
class TickingClock final : public Clock {
 public:
  [[nodiscard]] Nanoseconds now() const override { return now_ += tick; }
  void pause(Nanoseconds) override {}
  Nanoseconds tick{0};

 private:
  mutable Nanoseconds now_{0};
};

/// Steps of two numbers.
class NumberOpener final : public StepOpener {
 public:
  void open(StepInFlight& step, std::uint64_t number) override {
    step.open(number, testing::rows_at(number * 2, 2));
    step.cut({}, shape_.layout, *shape_.ring);
    step.await_rows();
  }
  void open_pulled(StepInFlight& step) override {
    step.cut({}, shape_.layout, *shape_.ring);
    step.await_rows();
  }
  [[nodiscard]] bool reads_ahead() const override { return false; }
  [[nodiscard]] std::uint64_t rows_ahead() const override { return 0; }

 private:
  BatchShape shape_ = testing::shape_of_numbers(2);
};

/// A consumer that computes by itself, of a window without threads.
class Consuming {
 public:
  explicit Consuming(const Dataset& dataset, RunSettings run_settings = {})
      : plan(testing::plan_of(dataset)),
        start{1, 0, plan->geometry, {}},
        settings(std::move(run_settings)),
        window({.threads = 0,
                .end = plan->program.stream ? kEndless : plan->geometry.steps(),
                .stream = plan->program.stream != nullptr,
                .step = {.skips = settings.ledger != nullptr}},
               opener, clock),
        consumer(plan, start, settings, window, [this] { return work(); }, clock, recorder) {
    window.begin({.threads = 0, .step_rows = 2, .step_bytes = 1}, 2);
  }

  /// For a stream: steps are published until `length`.
  bool work() {
    Task task;
    if (!window.begin_task(task)) return false;
    if (task.kind == Task::Kind::pull) {
      if (pulled == length) {
        window.end_stream();
      } else {
        auto step = window.spare_for(task, pulled);
        step->open_pulled(pulled, pulled * 2).after = {};
        step->set_place(testing::rows_at(0, 2));
        window.publish(std::move(step));
        ++pulled;
      }
    }
    for (const Piece& piece : task.pieces) {
      if (piece.step->number() == bad) piece.step->fail(failure);
      testing::write_numbers(piece.step->rows_of(0), piece.step->number() * 2);
      for (Failure& each : skipped) piece.step->failures.add(each, nullptr);
      if (piece.step->arrived(piece.rows)) piece.step->set_ready();
    }
    window.end_task(task, 0);
    return true;
  }

  std::shared_ptr<const PlanData> plan;
  RunStart start;
  RunSettings settings;
  TickingClock clock;
  NumberOpener opener;
  std::uint64_t pulled = 0;
  std::uint64_t length = 3;
  std::uint64_t bad = UINT64_MAX;
  Failure failure{"it broke"};
  std::vector<Failure> skipped;
  Window window;
  trace::Recorder recorder{{}, clock, {}};
  Consumer consumer;
};

Dataset steps(std::int64_t count) {
  return Dataset::range(2 * count).batch(2);
}
Dataset stream() {
  return Dataset::range(6).filter([](std::int64_t) { return true; }).batch(2);
}

TEST(ConsumerTest, StepsAreDeliveredInOrderUntilTheLast) {
  Consuming consuming(steps(3));
  for (std::uint64_t number = 0; number < 3; ++number) {
    EXPECT_TRUE(consuming.consumer.has_next());
    const auto batches = consuming.consumer.next();
    ASSERT_TRUE(batches);
    EXPECT_EQ(batches->front().step(), number);
    EXPECT_EQ(consuming.window.delivered(), number + 1);
  }
  EXPECT_FALSE(consuming.consumer.has_next());
  EXPECT_FALSE(consuming.consumer.next());
}

TEST(ConsumerTest, AFailedStepThrowsWithItsPlaceAndTheNextOneFollows) {
  Consuming consuming(steps(3), {.dataset = "train"});
  consuming.bad = 1;
  EXPECT_TRUE(consuming.consumer.next());
  try {
    consuming.consumer.next();
    FAIL() << "nothing was raised";
  } catch (const SampleError& error) {
    EXPECT_EQ(error.where().dataset, "train");
    EXPECT_EQ(error.where().epoch, 1U);
    EXPECT_EQ(error.where().step, 1U);
    EXPECT_EQ(error.where().position, 2U);
  }
  const auto batches = consuming.consumer.next();
  ASSERT_TRUE(batches);
  EXPECT_EQ(batches->front().step(), 2U);
}

TEST(ConsumerTest, ACancelledRowIsNotAFailureOfItsSample) {
  Consuming consuming(steps(3));
  consuming.bad = 0;
  consuming.failure = cancelled(0);
  EXPECT_THROW(consuming.consumer.next(), CancelledError);
}

TEST(ConsumerTest, AfterAStopAFailureIsACancellation) {
  Consuming consuming(steps(3));
  consuming.bad = 0;
  consuming.consumer.stop();
  EXPECT_TRUE(consuming.consumer.stopped());
  EXPECT_THROW(consuming.consumer.next(), CancelledError);
}

TEST(ConsumerTest, SkippedSamplesAreInTheLedgerInTheirOrder) {
  Ledger ledger("", 100);
  Consuming consuming(steps(1), {.ledger = &ledger});
  for (const std::uint64_t number : {9U, 4U}) {
    Failure failure{"bad value"};
    failure.where.sample = SampleKey{0, number};
    consuming.skipped.push_back(failure);
  }
  EXPECT_TRUE(consuming.consumer.next());
  const auto entries = ledger.entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].sample.number, 4U);
  EXPECT_EQ(entries[1].sample.number, 9U);
  EXPECT_EQ(entries[0].epoch, 1U);
}

TEST(ConsumerTest, NothingIsDeliveredWithoutWaitingBeforeAStepWasTaken) {
  Consuming consuming(steps(3));
  EXPECT_FALSE(consuming.consumer.next_if_ready());
  EXPECT_TRUE(consuming.consumer.next());
  EXPECT_FALSE(consuming.consumer.next_if_ready()) << "the window holds one step";
}

TEST(ConsumerTest, AStreamHasANextStepUntilItsEnd) {
  Consuming consuming(stream());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(consuming.consumer.has_next());
    EXPECT_TRUE(consuming.consumer.next());
    EXPECT_EQ(consuming.consumer.stream_place().position, 2U * static_cast<unsigned>(i + 1));
  }
  EXPECT_FALSE(consuming.consumer.has_next());
  EXPECT_FALSE(consuming.consumer.next());
}

TEST(ConsumerTest, AWaitWithPatienceEndsIfTheStreamDoesNotAnswer) {
  Consuming consuming(stream());
  EXPECT_EQ(consuming.consumer.has_next_within(Nanoseconds{0}), std::nullopt);
  EXPECT_EQ(consuming.pulled, 0U);
  EXPECT_EQ(consuming.consumer.has_next_within(std::chrono::hours(1)), true);
}

TEST(ConsumerTest, WhileWaitingIsCalledAndMayThrow) {
  RunSettings settings;
  settings.threads = 1;  // which never start
  int asked = 0;
  settings.while_waiting = [&asked] {
    if (++asked == 2) throw std::runtime_error("interrupted");
  };
  Consuming consuming(steps(3), settings);
  consuming.clock.tick = std::chrono::milliseconds(60);
  EXPECT_THROW(consuming.consumer.next(), std::runtime_error);
  EXPECT_EQ(asked, 2);
}

TEST(ConsumerTest, AStallErrorNamesTheAwaitedStep) {
  RunSettings settings;
  settings.threads = 1;  // which never start
  settings.stall_is_error = true;
  settings.stall_after = Nanoseconds{0};
  Consuming consuming(steps(3), settings);
  try {
    consuming.consumer.next();
    FAIL() << "nothing was raised";
  } catch (const ResourceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("epoch 1, step 0"));
    EXPECT_THAT(error.what(), HasSubstr("no thread works on it"));
  }
}

}  // namespace
}  // namespace penstock
