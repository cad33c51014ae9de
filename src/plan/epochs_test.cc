#include "plan/epochs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Dataset kSeven = Dataset::range(7).batch(1);

std::string told(const Dataset& dataset, EpochSteps epochs) {
  try {
    return Plan(dataset, {.epochs = epochs}).explain();
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(EpochsTest, AnEpochShorterThanAPassContinuesOrRestarts) {
  EXPECT_THAT(told(kSeven, {.steps = 5}),
              HasSubstr("an epoch: 5 steps, and the next continues there: a pass is 1 epoch and 2 "
                        "steps of the next, so epochs and passes differ\n"));
  EXPECT_THAT(told(kSeven, {.steps = 3}), HasSubstr("a pass is 2 epochs and 1 step of the next"));
  EXPECT_THAT(told(Dataset::range(6).batch(1), {.steps = 3}), HasSubstr("a pass is 2 epochs\n"));
  EXPECT_THAT(told(kSeven, {.steps = 5, .restart = true}),
              HasSubstr("the first 5 of the 7 steps of a new pass; the other 2 are skipped\n"));
  EXPECT_THAT(told(kSeven, {.steps = 7}), HasSubstr("an epoch: 7 steps, one pass\n"));
}

TEST(EpochsTest, AnEpochLongerThanAPassIsRejectedShortenedOrRepeated) {
  EXPECT_THAT(
      told(kSeven, {.steps = 10}),
      AllOf(HasSubstr("has 7 steps"), HasSubstr("steps_per_epoch is 10"), HasSubstr("repeat()")));
  EXPECT_THAT(told(kSeven, {.steps = 10, .short_epoch = true}),
              HasSubstr("an epoch: 7 steps, although 10 were requested"));
  EXPECT_THAT(
      told(kSeven.repeat(), {.steps = 10}),
      HasSubstr("an epoch: 10 steps, and the next continues there: a round of repeat() is 7 "
                "steps, so epochs and rounds differ\n"));
  EXPECT_THAT(told(kSeven.repeat(), {.steps = 7}),
              AllOf(HasSubstr("a round of repeat() is 1 epoch\n"), Not(HasSubstr("differ"))));
  EXPECT_THAT(told(Dataset::range(3).repeat().batch(2), {.steps = 4}),
              HasSubstr("4 steps of data without an end"));
  EXPECT_THAT(told(kSeven, {.steps = 0}), HasSubstr("steps_per_epoch is 0"));
}

TEST(EpochsTest, TheLengthOfAStreamIsKnownWhenItEnds) {
  const Dataset stream = kSeven.unbatch().filter([](std::int64_t x) { return x > 1; }).batch(2);
  EXPECT_THAT(told(stream, {.steps = 5}), HasSubstr("fewer than 5 are an error"));
  EXPECT_THAT(told(stream, {.steps = 5, .restart = true, .short_epoch = true}),
              AllOf(HasSubstr("of a new pass"), HasSubstr("make a shorter epoch")));
}

}  // namespace
}  // namespace penstock
