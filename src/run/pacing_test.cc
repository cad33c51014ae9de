#include "run/pacing.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace penstock {
namespace {

Pacing pace(std::uint64_t step_rows, std::uint64_t bytes_max = UINT64_MAX) {
  return Pacing({.threads = 2,
                 .step_rows = step_rows,
                 .step_bytes = 1000,
                 .bytes_max = bytes_max,
                 .steps_wished = 0});
}

void run_tasks(Pacing& pacing, double nanoseconds_per_row) {
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t rows = pacing.task_rows();
    pacing.measured(rows,
                    static_cast<std::uint64_t>(nanoseconds_per_row * static_cast<double>(rows)));
  }
}

TEST(PacingTest, TheFirstStepIsSplitOverAllThreads) {
  EXPECT_EQ(pace(64).task_rows(), 8U);
  EXPECT_EQ(pace(1).task_rows(), 1U);
}

TEST(PacingTest, CostlyRowsAreTakenOneByOneAndFewStepsAhead) {
  Pacing pacing = pace(64);
  run_tasks(pacing, 200e3);
  EXPECT_EQ(pacing.task_rows(), 1U);
  EXPECT_EQ(pacing.window(), 3U);
}

TEST(PacingTest, WorkerProcessesGetOneRowEachAndOneInTheQueue) {
  Pacing pacing({.threads = 2, .step_rows = 64, .step_bytes = 1000, .rows_at_once = 6});
  run_tasks(pacing, 5e6);
  EXPECT_EQ(pacing.task_rows(), 6U) << "three processes for each thread, twice";
  run_tasks(pacing, 1000);
  EXPECT_GE(pacing.task_rows(), 500U) << "a round trip to a process needs a millisecond of work";
}

TEST(PacingTest, CheapRowsAreTakenInRunsOfManySteps) {
  Pacing pacing = pace(256);
  run_tasks(pacing, 10);
  EXPECT_GE(pacing.task_rows(), 5000U);
  EXPECT_GE(pacing.window() * 256, 8 * pacing.task_rows() / 2);
}

TEST(PacingTest, TheWindowKeepsItsMinimumWithinTheByteBudget) {
  Pacing pacing = pace(256);
  run_tasks(pacing, 10);
  const std::uint64_t wide = pacing.window();
  ASSERT_GT(wide, 40U);
  pacing.measured(1, 1'000'000'000, wide);
  EXPECT_EQ(pacing.window(), wide);
  pacing.measured(1, 1'000'000'000);
  EXPECT_LT(pacing.window(), 10U);
  Pacing small = pace(256, 5000);
  small.measured(1, 1000, 100);
  EXPECT_EQ(small.window(), 5U);
}

TEST(PacingTest, TheWindowNeverExceedsTheByteBudget) {
  Pacing pacing = pace(256, 5000);
  run_tasks(pacing, 1);
  for (int i = 0; i < 20; ++i) pacing.consumer_waited();
  EXPECT_EQ(pacing.window(), 5U);
  EXPECT_EQ(pace(256, 1).window(), 1U) << "one step is always allowed";
}

TEST(PacingTest, TheWindowFollowsTheMeasuredBytesOfSteps) {
  std::string decision;
  Pacing pacing(
      {.threads = 2, .step_rows = 1, .step_bytes = 100, .bytes_max = 10'000, .steps_wished = 50},
      [&](std::string text) { decision = std::move(text); });
  EXPECT_EQ(pacing.window(), 50U);
  pacing.measured_bytes(2000);
  EXPECT_EQ(pacing.window(), 5U);
  EXPECT_EQ(pacing.step_bytes(), 2000U);
  EXPECT_NE(decision.find("bytes"), std::string::npos) << decision;
  for (int i = 0; i < 100; ++i) pacing.measured_bytes(10);
  EXPECT_LT(pacing.step_bytes(), 150U);
  EXPECT_GE(pacing.step_bytes(), 100U) << "never less than the layout";
  run_tasks(pacing, 1000);
  EXPECT_GE(pacing.window(), 50U);
}

TEST(PacingTest, AClockThatDoesNotAdvanceChangesNothing) {
  Pacing pacing = pace(64);
  pacing.measured(8, 0);
  EXPECT_EQ(pacing.task_rows(), 8U);
}

TEST(PacingTest, AWaitingConsumerWidensTheWindowUpToALimitWithAReason) {
  std::string decision;
  Pacing pacing({.threads = 2, .step_rows = 64, .step_bytes = 1000},
                [&](std::string text) { decision = std::move(text); });
  const std::uint64_t before = pacing.window();
  for (int i = 0; i < 20; ++i) pacing.consumer_waited();
  EXPECT_EQ(pacing.window(), 8 * before);
  EXPECT_NE(decision.find("waited"), std::string::npos) << decision;
}

}  // namespace
}  // namespace penstock
