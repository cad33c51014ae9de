#include "run/puller.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "run/plan_for_tests.h"

namespace penstock {
namespace {

/// 0, 1, ... as a stream; the function that checks them throws for `bad`.
Dataset stream(std::int64_t count, std::int64_t bad = -1) {
  return Dataset::range(count)
      .filter([bad](std::int64_t x) {
        if (x == bad) throw std::runtime_error("bad value");
        return true;
      })
      .batch(4);
}

Puller puller_of(const Dataset& dataset, PullerSettings settings = {}) {
  return {testing::plan_of(dataset), std::move(settings), Clock::real()};
}

std::vector<std::int64_t> values_of(const StepInFlight& step) {
  const BlockView& rows = *given_rows(step);
  const auto* const first = reinterpret_cast<const std::int64_t*>(rows.columns[0].data);
  return {first, first + rows.rows};
}

TEST(PullerTest, StepsArePulledInOrderWithTheirPositions) {
  Scratch scratch;
  Puller puller = puller_of(stream(10), {.step = 5});
  StepInFlight step({});
  std::vector<std::vector<std::int64_t>> pulled;
  std::vector<std::uint64_t> positions;
  while (puller.pull(step, scratch)) {
    EXPECT_EQ(step.number(), 5 + pulled.size());
    EXPECT_EQ(step.place().count, given_rows(step)->rows);
    pulled.push_back(values_of(step));
    positions.push_back(step.pulled()->position);
  }
  EXPECT_EQ(pulled, (std::vector<std::vector<std::int64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}}));
  EXPECT_EQ(positions, (std::vector<std::uint64_t>{0, 4, 8}));
  EXPECT_EQ(puller.next_step(), 8U);
}

TEST(PullerTest, AStepThatFailsToPullIsReadyAndFailed) {
  Scratch scratch;
  Puller puller = puller_of(stream(10, 5));
  StepInFlight step({});
  ASSERT_TRUE(puller.pull(step, scratch));
  EXPECT_FALSE(step.ready());
  ASSERT_TRUE(puller.pull(step, scratch));
  EXPECT_TRUE(step.ready());
  const auto failure = step.take_failure();
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->message.find("bad value"), std::string::npos);
  EXPECT_EQ(step.number(), 1U);
}

TEST(PullerTest, SkippedRowsAreFailuresOfTheirStepAndThoseAfterTheLastAreLeftOver) {
  Scratch scratch;
  Puller puller = puller_of(stream(9, 8), {.skips = true});
  StepInFlight step({.skips = true});
  ASSERT_TRUE(puller.pull(step, scratch));
  ASSERT_TRUE(puller.pull(step, scratch));
  EXPECT_TRUE(step.failures.take().empty());
  EXPECT_FALSE(puller.pull(step, scratch));
  EXPECT_EQ(puller.take_left_over().size(), 1U);
  EXPECT_TRUE(puller.take_left_over().empty());
}

TEST(PullerTest, AStreamContinuesAtItsPlace) {
  Scratch scratch;
  StreamPlace from;
  {
    Puller puller = puller_of(stream(10));
    StepInFlight step({});
    ASSERT_TRUE(puller.pull(step, scratch));
    from.anchor = step.pulled()->after;
    from.position = 4;
  }
  Puller puller = puller_of(stream(10), {.step = 1, .from = from});
  StepInFlight step({});
  ASSERT_TRUE(puller.pull(step, scratch));
  EXPECT_EQ(values_of(step), (std::vector<std::int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(step.pulled()->position, 4U);
}

TEST(PullerTest, StoredStepsStayInOrder) {
  Scratch scratch;
  Puller puller = puller_of(stream(8));
  for (int i = 0; i < 2; ++i) {
    auto step = std::make_unique<StepInFlight>(StepSettings{});
    ASSERT_TRUE(puller.pull(*step, scratch));
    puller.keep(std::move(step));
    EXPECT_EQ(puller.last_kept().number(), static_cast<std::uint64_t>(i));
  }
  const auto kept = puller.take_kept();
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept.front()->number(), 0U);
  EXPECT_TRUE(puller.take_kept().empty());
}

TEST(PullerTest, NoHelpIsNeededWhileNothingIsPulled) {
  Scratch scratch;
  Puller puller = puller_of(stream(8), {.threads = 4, .wake = [] {}});
  EXPECT_FALSE(puller.wants_help());
}

}  // namespace
}  // namespace penstock
