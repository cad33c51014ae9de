#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/plan.h"
#include "plan/plan_data.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

Dataset numbers(std::int64_t count) {
  return Dataset::range(count);
}

TEST(ExplainTest, ThePlanShowsStepsSamplesAndShares) {
  const Plan plan(numbers(103).shuffle({.seed = 7}).batch(16), {.shares = {5, 0, 5}});
  EXPECT_THAT(plan.explain(),
              AllOf(HasSubstr("7 steps"), HasSubstr("103 samples"), HasSubstr("global batch 16"),
                    ContainsRegex("first step +16 samples over 5 shares: 4, 3, 3, 3, 3\n"),
                    ContainsRegex("last step +7 samples over 5 shares: 2, 2, 1, 1, 1\n"),
                    Not(HasSubstr("served here")), Not(HasSubstr("dropped"))));
}

TEST(ExplainTest, ThePlanShowsTheDatasetWithItsSeedsAndItsDigests) {
  const Dataset data = numbers(103).shuffle().batch(16);
  EXPECT_THAT(Plan(data).explain(),
              AllOf(HasSubstr(data.describe()), HasSubstr("shuffle(seed=0)"),
                    HasSubstr(data.digests().order), HasSubstr(data.digests().values),
                    Not(HasSubstr("random seed"))));
}

TEST(ExplainTest, ADrawnSeedIsPrinted) {
  const Plan plan(numbers(103).shuffle({.seed = Seed::random()}).batch(16));
  EXPECT_THAT(plan.explain(),
              AllOf(HasSubstr("shuffle(seed=random)"),
                    HasSubstr(fmt::format("random seed: {}\n", plan.data()->drawn_seed))));
}

TEST(ExplainTest, SamplesDroppedByATailAreCounted) {
  const Dataset data = numbers(103).batch(16);
  EXPECT_THAT(Plan(data, {.tail = Tail::drop}).explain(),
              AllOf(HasSubstr("6 steps, 96 samples"), HasSubstr("drop: 7 samples")));
  EXPECT_THAT(Plan(numbers(96).batch(16), {.tail = Tail::drop}).explain(), Not(HasSubstr("drop:")));
}

TEST(ExplainTest, SamplesRepeatedByAWrapAreCounted) {
  EXPECT_THAT(Plan(numbers(103).batch(16), {.tail = Tail::wrap}).explain(),
              AllOf(HasSubstr("7 steps, 112 samples"), HasSubstr("wrap: 9 samples are repeated"),
                    HasSubstr("weight 1")));
  EXPECT_THAT(Plan(numbers(96).batch(16), {.tail = Tail::wrap}).explain(), Not(HasSubstr("wrap:")));
}

TEST(ExplainTest, EmptyRowsOfPaddingAreCounted) {
  // 7 steps of 5 shares with 4 rows each.
  EXPECT_THAT(
      Plan(numbers(103).batch(16), {.shares = {5, 0, 5}, .tail = Tail::pad}).explain(),
      AllOf(HasSubstr("7 steps, 103 samples"), HasSubstr("pad: 37 of 140 rows are empty"),
            ContainsRegex("last step +7 samples over 5 shares: 2, 2, 1, 1, 1, in 4 rows each\n"),
            HasSubstr("loss_scale is 1"), Not(HasSubstr("weight 1,"))));
}

TEST(ExplainTest, EvenStepsCostNothing) {
  EXPECT_THAT(Plan(numbers(103).batch(16), {.tail = Tail::even}).explain(),
              AllOf(HasSubstr("7 steps, 103 samples"), ContainsRegex("first step +15 samples"),
                    ContainsRegex("last step +14 samples"), Not(HasSubstr("tail even:"))));
}

TEST(ExplainTest, SamplesUnusedByZipAreCounted) {
  const Plan plan(Dataset::zip({numbers(10), numbers(7)}).batch(4));
  EXPECT_THAT(plan.explain(), HasSubstr("note: zip: 3 of the 10 samples of part 0 are unused\n"));
}

TEST(ExplainTest, SharesServedElsewhereAreNamed) {
  const Plan plan(numbers(10).batch(8), {.shares = {4, 1, 2}});
  EXPECT_THAT(plan.explain(), AllOf(HasSubstr("served here: shares 1 to 2 of 4\n"),
                                    ContainsRegex("first step +8 samples over 4 shares")));
}

TEST(ExplainTest, ASingleStepIsShownOnceAndAnEmptyPassShowsNone) {
  EXPECT_THAT(Plan(numbers(3).batch(8)).explain(),
              AllOf(HasSubstr("1 step, 3 samples"), Not(HasSubstr("last step"))));
  EXPECT_THAT(Plan(numbers(0).batch(8)).explain(),
              AllOf(HasSubstr("0 steps, 0 samples"), Not(HasSubstr("first step"))));
}

TEST(ExplainTest, EndlessAndUncountedSizesAreShown) {
  EXPECT_THAT(Plan(numbers(10).batch(4).repeat()).explain(),
              AllOf(HasSubstr("endless steps, endless samples"), HasSubstr("first step"),
                    Not(HasSubstr("last step"))));
  EXPECT_THAT(Plan(numbers(1'000'000).batch(4).shard(2, 0)).explain(),
              HasSubstr("125000 steps, uncounted samples"));
}

TEST(ExplainTest, TheBytesOfABatchAreShownOrUnknown) {
  const auto rows = Tensor::of<float>(std::vector<float>(4 << 20), {4, 1 << 20});
  EXPECT_THAT(Plan(Dataset::from_tensor_slices(rows).batch(4)).explain(),
              HasSubstr("one batch: 16.0 MiB"));
  const auto same = [](const Sample& sample) { return sample; };
  EXPECT_THAT(Plan(numbers(4).map(same).batch(2)).explain(),
              AllOf(HasSubstr("unknown until the first sample"), HasSubstr("spec=")));
}

TEST(ExplainTest, ThreadsAndLookAheadAreShown) {
  const Dataset data = numbers(10).batch(2);
  EXPECT_THAT(Plan(data).explain(), AllOf(ContainsRegex("threads: [0-9]+ of the [0-9]+ that all"),
                                          HasSubstr("look-ahead: up to a quarter")));
  EXPECT_THAT(Plan(data.with_options({.threads = 1, .lookahead_bytes = 1 << 20})).explain(),
              AllOf(HasSubstr("threads: 1 of"), HasSubstr("look-ahead: up to 1.0 MiB")));
  EXPECT_THAT(Plan(data.with_options({.threads = 0})).explain(), HasSubstr("threads: none"));
}

TEST(ExplainTest, SharesWithoutSamplesAreCounted) {
  EXPECT_THAT(
      Plan(numbers(10).batch(8), {.shares = {4, 0, 4}}).explain(),
      HasSubstr("2 of 4 shares have no sample in the last step: they get batches of 0 row"));
  EXPECT_THAT(Plan(numbers(10).batch(8), {.shares = {4, 0, 4}, .tail = Tail::pad}).explain(),
              HasSubstr("they get batches of 0 valid rows"));
  EXPECT_THAT(Plan(numbers(10).batch(8), {.shares = {2, 0, 2}}).explain(),
              Not(HasSubstr("have no sample")));
}

TEST(ExplainTest, TailCostReturnsDroppedRepeatedAndPadded) {
  const auto cost = [](Tail tail) {
    return Plan(numbers(103).batch(16), {.shares = {5, 0, 5}, .tail = tail}).tail_cost();
  };
  EXPECT_EQ(cost(Tail::drop).dropped, 7U);
  EXPECT_EQ(cost(Tail::wrap).repeated, 9U);
  EXPECT_EQ(cost(Tail::pad).padded, 37U);
  EXPECT_EQ(cost(Tail::pad).rows, 140U);
  EXPECT_EQ(cost(Tail::short_).dropped + cost(Tail::short_).repeated, 0U);
}

TEST(ExplainTest, AStreamShowsItsFullStep) {
  const Dataset stream = numbers(10).filter([](std::int64_t x) { return x > 2; }).batch(7);
  EXPECT_THAT(Plan(stream, {.shares = {3, 0, 1}}).explain(),
              AllOf(HasSubstr("a pass: unknown steps"), HasSubstr("a stream: pulled in one order"),
                    HasSubstr("full step       7 samples over 3 shares: 3, 2, 2\n")));
  EXPECT_THAT(Plan(stream, {.shares = {3, 0, 1}, .tail = Tail::pad}).explain(),
              AllOf(HasSubstr("3, 2, 2, in 3 rows each"), HasSubstr("fill up the last step")));
}

TEST(ExplainTest, StepsThatTheDatasetCountsTieAStateToTheBatchSize) {
  EXPECT_THAT(Plan(numbers(10).batch(4).take(2)).explain(),
              HasSubstr("only at the same batch size"));
  EXPECT_THAT(Plan(numbers(10).batch(4).repeat(2)).explain(), Not(HasSubstr("same batch size")));
}

TEST(ExplainTest, SamplesDroppedBelowAnUnbatchAreCounted) {
  const Plan plan(Dataset::range(10).batch(4, {.drop_remainder = true}).unbatch().batch(3));
  EXPECT_THAT(plan.explain(), testing::HasSubstr("drop: 2 samples"));
}

TEST(ExplainTest, OneOfAKindIsSingular) {
  const std::string text = Plan(numbers(1).batch(4)).explain();
  EXPECT_THAT(text, AllOf(HasSubstr("a pass: 1 step, 1 sample,"), HasSubstr("over 1 share:"),
                          HasSubstr("1 share here"), Not(HasSubstr("1 shares"))));
}

TEST(ExplainTest, OptionsAndSeedsArePrintedOnce) {
  const Dataset data = numbers(4).with_options({.name = "train", .threads = 1}).batch(2);
  EXPECT_THAT(Plan(data).explain(), HasSubstr("with_options(name=\"train\", threads=1)"));
}

TEST(ExplainTest, ALargeCycleAddsANoteAboutTheSizeOfStates) {
  const auto open = [](std::uint64_t cycle) {
    return Plan(numbers(10)
                    .interleave([](std::int64_t) { return numbers(2); }, {.cycle = cycle})
                    .batch(4))
        .explain();
  };
  EXPECT_THAT(open(1024), HasSubstr("up to 1024 open datasets"));
  EXPECT_THAT(open(16), Not(HasSubstr("open datasets")));
}

}  // namespace
}  // namespace penstock
