#include "run/step_in_flight.h"

#include <gtest/gtest.h>

#include <vector>

#include "run/plan_for_tests.h"

namespace penstock {
namespace {

using testing::rows_at;
using testing::shape_of_numbers;
using testing::write_numbers;

std::vector<std::int64_t> values_of(const Batch& batch) {
  const auto values = batch.values<std::int64_t>();
  return {values.begin(), values.end()};
}

TEST(StepInFlightTest, AStepHasOneKindAndCanBeReusedAsAnother) {
  StepInFlight step({});
  step.open(3, rows_at(30, 10));
  EXPECT_EQ(step.number(), 3U);
  EXPECT_EQ(step.pulled(), nullptr);
  EXPECT_EQ(step.asked(), nullptr);
  EXPECT_EQ(given_rows(step), nullptr);

  PulledRows& pulled = step.open_pulled(4, 40);
  EXPECT_EQ(step.pulled(), &pulled);
  EXPECT_EQ(step.asked(), nullptr);
  EXPECT_EQ(given_rows(step), &pulled.rows);
  EXPECT_EQ(pulled.position, 40U);

  step.open_asked(5, rows_at(7, 1));
  EXPECT_EQ(step.pulled(), nullptr);
  ASSERT_NE(step.asked(), nullptr);
  EXPECT_EQ(step.asked()->index, 7U);
  EXPECT_EQ(given_rows(step), &step.asked()->batch.view);
  EXPECT_TRUE(step.whole());
  EXPECT_TRUE(step.arrived(1)) << "it counts as one row until its batch arrives";

  step.open(6, rows_at(60, 10));
  EXPECT_EQ(step.asked(), nullptr);
  EXPECT_FALSE(step.whole());
}

TEST(StepInFlightTest, TheLocalSharesAreCutFromTheRowsOfTheStep) {
  const BatchShape shape = shape_of_numbers(4, 2);
  StepInFlight step({.pass = 2, .shares = {3, 1, 2}});
  step.open(0, rows_at(0, 10));
  step.cut({}, shape.layout, *shape.ring);
  ASSERT_EQ(step.shares().size(), 2U);
  EXPECT_EQ(step.shares()[0].first_row, 4U);
  EXPECT_EQ(step.shares()[0].rows, 3U);
  EXPECT_EQ(step.shares()[1].first_row, 7U);
  EXPECT_EQ(step.shares()[1].rows, 3U);
  EXPECT_EQ(step.rows_here(), 6U);
  const StepBatches batches = step.take_batches();
  EXPECT_EQ(batches[1].share(), 2U);
  EXPECT_EQ(batches[1].epoch(), 2U);
}

TEST(StepInFlightTest, LearnedRowsAreTheFirstOfTheShares) {
  const BatchShape shape = shape_of_numbers(5, 2);
  StepInFlight step({.shares = {2, 0, 2}});
  step.open(0, rows_at(0, 10));
  step.cut({}, shape.layout, *shape.ring);
  step.set_learned(7);
  EXPECT_EQ(step.shares()[0].learned, 5U);
  EXPECT_EQ(step.shares()[1].learned, 2U);
  step.await_rows();
  EXPECT_FALSE(step.ready());
  EXPECT_FALSE(step.arrived(2));
  EXPECT_TRUE(step.arrived(1));
}

TEST(StepInFlightTest, AStepWhoseRowsAreAllLearnedIsReadyAtOnce) {
  const BatchShape shape = shape_of_numbers(5);
  StepInFlight step({});
  step.open(0, rows_at(0, 5));
  step.cut({}, shape.layout, *shape.ring);
  step.set_learned(5);
  step.await_rows();
  EXPECT_TRUE(step.ready());
  step.open(1, rows_at(5, 5));
  EXPECT_FALSE(step.ready());
}

TEST(StepInFlightTest, TheFailureOfTheFirstRowIsReturnedOnce) {
  StepInFlight step({});
  step.open(0, rows_at(0, 10));
  EXPECT_FALSE(step.has_failed());
  step.fail({"row 5", {}, {}, nullptr, 5});
  step.fail({"row 2", {}, {}, nullptr, 2});
  step.fail({"row 7", {}, {}, nullptr, 7});
  EXPECT_TRUE(step.has_failed());
  const auto failure = step.take_failure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message, "row 2");
  EXPECT_FALSE(step.has_failed());
  EXPECT_FALSE(step.take_failure());
}

TEST(StepInFlightTest, FailedRowsAreRemovedIfFailuresAreSkipped) {
  const BatchShape shape = shape_of_numbers(4);
  StepInFlight step({.skips = true});
  step.open(0, rows_at(0, 4));
  step.cut({}, shape.layout, *shape.ring);
  const BlockView rows = step.rows_of(0);
  EXPECT_EQ(rows.identity.failures, &step.failures);
  write_numbers(rows, 0);
  rows.identity.failed[1] = kRowFailed;
  EXPECT_GT(step.complete(), 0U);
  EXPECT_EQ(step.shares()[0].rows, 4U) << "as it was cut";
  const StepBatches batches = step.take_batches();
  EXPECT_EQ(values_of(batches[0]), (std::vector<std::int64_t>{0, 2, 3}));
}

TEST(StepInFlightTest, AShareThatMustNotBeEmptyKeepsOneEmptyRow) {
  const BatchShape shape = shape_of_numbers(2);
  StepInFlight step({.skips = true, .no_empty_share = true});
  step.open(0, rows_at(0, 2));
  step.cut({}, shape.layout, *shape.ring);
  const BlockView rows = step.rows_of(0);
  write_numbers(rows, 0);
  rows.identity.failed[0] = rows.identity.failed[1] = kRowFailed;
  step.complete();
  const StepBatches batches = step.take_batches();
  EXPECT_EQ(batches[0].rows(), 1U);
  EXPECT_EQ(batches[0].valid_count(), 0U);
}

TEST(StepInFlightTest, FlagsAreClearedOnReuse) {
  const BatchShape shape = shape_of_numbers(2);
  StepInFlight step({.masks = true});
  for (std::uint64_t number = 0; number < 2; ++number) {
    step.open(number, rows_at(2 * number, 2));
    step.cut({}, shape.layout, *shape.ring);
    const BlockView rows = step.rows_of(0);
    EXPECT_EQ(rows.identity.failures, nullptr);
    EXPECT_EQ(rows.identity.failed[0], kRowGood);
    rows.identity.failed[0] = kRowMasked;
  }
}

TEST(StepInFlightTest, TheBytesOfACompleteStepEqualThoseOfItsBatches) {
  const BatchShape shape = shape_of_numbers(4);
  ByteBudget budget(1 << 20);
  StepInFlight step({});
  ASSERT_TRUE(step.bytes.take(budget, 1, true));
  step.open(0, rows_at(0, 4));
  step.cut({}, shape.layout, *shape.ring);
  EXPECT_EQ(step.complete(), shape.layout->bytes);
  EXPECT_EQ(budget.used(), shape.layout->bytes);
}

}  // namespace
}  // namespace penstock
