#include "penstock/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan_data.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const Dataset& dataset, const PlanOptions& options) {
  try {
    const Plan plan(dataset, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "it was accepted";
}

Dataset numbers(std::int64_t count) {
  return Dataset::range(count);
}

Shares of(std::uint32_t total) {
  return {.total = total, .first = 0, .count = 1};
}

std::vector<std::int64_t> first_step(const Plan& plan, std::uint64_t pass = 0) {
  const Batch batch = run_block(plan, {pass, 0, 0, plan.cut(0)[0]});
  const auto values = batch.values<std::int64_t>();
  return {values.begin(), values.end()};
}

TEST(PlanTest, SingleSamplesAreNotPlanned) {
  EXPECT_THAT(refusal(numbers(4), {}), AllOf(HasSubstr("batches"), HasSubstr(".batch(1)")));
}

TEST(PlanTest, SharesMustBeInRange) {
  const Dataset data = numbers(4).batch(2);
  EXPECT_THAT(refusal(data, {.shares = {0, 0, 1}}), HasSubstr("total must be positive"));
  EXPECT_THAT(refusal(data, {.shares = {4, 0, 0}}), HasSubstr("count must be positive"));
  EXPECT_THAT(refusal(data, {.shares = {4, 4, 1}}),
              HasSubstr("1 from 4 on are out of range: there are 4"));
  EXPECT_THAT(refusal(data, {.shares = {4, 2, 3}}),
              HasSubstr("3 from 2 on are out of range: there are 4"));
  EXPECT_THAT(refusal(data, {.shares = {4, 1, UINT32_MAX}}), HasSubstr("out of range"));
  EXPECT_EQ(refusal(data, {.shares = {4, 2, 2}}), "it was accepted");
}

TEST(PlanTest, StepsSamplesAndCutsAddUp) {
  for (std::int64_t count = 0; count <= 12; ++count) {
    for (std::int64_t size = 1; size <= 5; ++size) {
      const Dataset batches = numbers(count).batch(size);
      const std::vector<Dataset> datasets = {batches,
                                             batches.repeat(3),
                                             batches.take(2),
                                             batches.skip(1),
                                             batches.shuffle(),
                                             batches.shard(2, 1),
                                             batches.concatenate(numbers(5).batch(2)),
                                             batches.shuffle().take(2)};
      for (const Dataset& dataset : datasets) {
        for (const Tail tail : {Tail::short_, Tail::drop}) {
          const Plan plan(dataset, {.shares = of(3), .tail = tail});
          std::uint64_t samples = 0;
          for (std::uint64_t step = 0; step < plan.steps().count(); ++step) {
            const auto cut = plan.cut(step);
            ASSERT_EQ(cut.size(), 3U);
            ASSERT_GE(cut[0], cut[2]);
            ASSERT_LE(cut[0] - cut[2], 1U);
            const std::uint64_t rows = std::accumulate(cut.begin(), cut.end(), std::uint64_t{0});
            ASSERT_GE(rows, 1U);
            ASSERT_LE(rows, plan.batch_samples());
            samples += rows;
          }
          ASSERT_EQ(plan.samples(), Cardinality::of(samples)) << plan.explain();
          if (tail == Tail::short_) {
            ASSERT_EQ(plan.steps(), dataset.cardinality()) << plan.explain();
          }
        }
      }
    }
  }
}

TEST(PlanTest, TheCutDoesNotDependOnTheLocalShares) {
  const Dataset data = numbers(103).batch(16);
  const Plan all(data, {.shares = {5, 0, 5}});
  EXPECT_THAT(all.cut(0), ElementsAre(4, 3, 3, 3, 3));
  EXPECT_THAT(all.cut(6), ElementsAre(2, 2, 1, 1, 1));
  EXPECT_EQ(Plan(data, {.shares = {5, 3, 2}}).cut(6), all.cut(6));
  EXPECT_THAT(Plan(numbers(2).batch(16), {.shares = of(4)}).cut(0), ElementsAre(1, 1, 0, 0));
}

TEST(PlanTest, AStepBeyondTheEndThrowsWithBothNumbers) {
  const Plan plan(numbers(10).batch(4));
  try {
    (void)plan.cut(3);
    FAIL() << "step 3 has a cut";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("step 3"), HasSubstr("3 steps")));
  }
  EXPECT_THROW((void)Plan(numbers(0).batch(4)).cut(0), ConfigError);
}

TEST(PlanTest, EndlessDataHasEndlessSteps) {
  const Plan plan(numbers(10).batch(4).repeat());
  EXPECT_TRUE(plan.steps().is_endless());
  EXPECT_TRUE(plan.samples()->is_endless());
  EXPECT_THAT(plan.cut(3'000'000'002), ElementsAre(2));
}

TEST(PlanTest, SamplesAreUncountedIfCountingNeedsALongWalk) {
  EXPECT_EQ(Plan(numbers(1'000'000).batch(4).shard(2, 0)).samples(), std::nullopt);
  EXPECT_EQ(Plan(numbers(1'000'000).batch(4).shuffle()).samples(), Cardinality::of(1'000'000));
}

TEST(PlanTest, TheLargestOfSeveralBatchSizesIsNamed) {
  EXPECT_EQ(Plan(numbers(9).batch(2)).batch_samples(), 2U);
  EXPECT_EQ(Plan(numbers(9).batch(2).concatenate(numbers(9).batch(7)).repeat()).batch_samples(),
            7U);
}

TEST(PlanTest, BatchBytesEqualTheSizeOfABatch) {
  const auto rows = Tensor::of<float>(std::vector<float>(1300), {13, 100});
  const Dataset data = Dataset::zip({Dataset::from_tensor_slices(rows), numbers(13)}).batch(13);
  const Plan plan(data);
  EXPECT_EQ(plan.batch_bytes(), run_block(plan, {0, 0, 0, 13}).bytes());
  const Plan cut(data, {.shares = of(3)});
  EXPECT_EQ(cut.batch_bytes(), run_block(plan, {0, 0, 0, 5}).bytes());
}

TEST(PlanTest, BatchBytesAreUnknownForAnUnknownSpec) {
  const auto same = [](const Sample& sample) { return sample; };
  EXPECT_EQ(Plan(numbers(4).map(same).batch(2)).batch_bytes(), std::nullopt);
  EXPECT_NE(
      Plan(numbers(4).map(same, {.spec = ElementSpec::single(Dtype::i64)}).batch(2)).batch_bytes(),
      std::nullopt);
}

TEST(PlanTest, TheTailOfThePlanAppliesOnlyToBatchesWithoutOne) {
  const PlanOptions drop{.tail = Tail::drop};
  EXPECT_EQ(Plan(numbers(10).batch(4), drop).steps(), Cardinality::of(2));
  EXPECT_EQ(Plan(numbers(10).batch(4, {.tail = Tail::short_}), drop).steps(), Cardinality::of(3));
  EXPECT_EQ(Plan(numbers(10).batch(4).repeat(3), drop).samples(), Cardinality::of(24));
}

TEST(PlanTest, MakingAndReadingAPlanCallsNoUserFunction) {
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const auto source = [calls](std::uint64_t) {
    ++*calls;
    return Sample(Tensor::scalar(1.0F));
  };
  const auto same = [calls](const Sample& sample) {
    ++*calls;
    return sample;
  };
  const Plan plan(Dataset::from_index(9, source, {.name = "nine"})
                      .map(same, {.name = "same"})
                      .shuffle()
                      .cache()
                      .batch(4));
  (void)plan.explain();
  (void)plan.serialize();
  (void)plan.batch_bytes();
  EXPECT_EQ(*calls, 0);
}

TEST(PlanTest, ASeedIsDrawnOncePerPlanAndCanBePassedToAnother) {
  const Dataset data = numbers(60).shuffle({.seed = Seed::random()}).batch(60);
  const Plan plan(data);
  const Plan copy = plan;  // NOLINT(performance-unnecessary-copy-initialization): copies share
  EXPECT_EQ(first_step(plan), first_step(copy));
  EXPECT_NE(first_step(plan), first_step(Plan(data))) << "another plan draws another seed";
  const Plan again(data, {.drawn_seed = plan.data()->drawn_seed});
  for (std::uint64_t pass = 0; pass < 3; ++pass)
    EXPECT_EQ(first_step(again, pass), first_step(plan, pass));
}

TEST(PlanTest, ADrawnSeedGivesTheSameOrderAsAFixedOne) {
  const Dataset data = numbers(60);
  const Dataset drawn = data.shuffle({.seed = Seed::random()}).batch(60);
  EXPECT_EQ(first_step(Plan(drawn, {.drawn_seed = 5})),
            first_step(Plan(data.shuffle({.seed = 5}).batch(60))));
  const Dataset given = data.shuffle({.seed = 5}).batch(60);
  EXPECT_EQ(first_step(Plan(given, {.drawn_seed = 6})), first_step(Plan(given)));
}

TEST(PlanTest, AllShufflesWithARandomSeedShareOne) {
  const Dataset drawn = numbers(60).shuffle({.seed = Seed::random()});
  const Plan plan(Dataset::zip({drawn, drawn}).batch(60));
  const Batch batch = run_block(plan, {0, 0, 0, 60});
  const auto left = batch.values<std::int64_t>("0");
  const auto right = batch.values<std::int64_t>("1");
  EXPECT_TRUE(std::ranges::equal(left, right));
}

TEST(PlanTest, OrderAndValuesDigestsAreThoseOfTheDataset) {
  const Dataset data = numbers(10).map(cast(Dtype::f32)).shuffle({.seed = 7}).batch(4);
  EXPECT_EQ(Plan(data, {.shares = of(3)}).digests(), data.digests());
}

TEST(HintsTest, TheOutermostHintWins) {
  const Dataset data = numbers(10)
                           .with_options({.name = "inner", .threads = 1, .lookahead_bytes = 10})
                           .prefetch({.steps = 2})
                           .batch(4)
                           .with_options({.name = "outer"})
                           .prefetch({.steps = 3, .bytes = 20});
  const Hints hints = hints_of(*data.node());
  EXPECT_EQ(hints.name, "outer");
  EXPECT_EQ(hints.threads, 1U);
  EXPECT_EQ(hints.lookahead_bytes, 20U);
  EXPECT_EQ(hints.prefetch_steps, 3U);
  const Hints alone = hints_of(*data.with_options({.threads = 0}).node());
  EXPECT_EQ(alone.threads, 0U);
  EXPECT_EQ(alone.name, "outer") << "options that are not set keep their value";
  EXPECT_EQ(hints_of(*numbers(10).batch(4).node()).threads, std::nullopt);
}

TEST(PlanTest, TheDefaultTailIsPartOfTheOrderIfStepsAreCounted) {
  const Dataset data = Dataset::range(10).batch(3).shuffle();
  EXPECT_NE(Plan(data, {.tail = Tail::drop}).digests().order, Plan(data).digests().order);
  const Dataset free = Dataset::range(10).batch(3);
  EXPECT_EQ(Plan(free, {.tail = Tail::drop}).digests().order, Plan(free).digests().order);
}

TEST(PlanTest, EndlessDataRepeatedZeroTimesIsEmpty) {
  EXPECT_EQ(Plan(Dataset::range(3).repeat().repeat(0).batch(2)).steps(), Cardinality::of(0));
}

TEST(PlanTest, AnEmptyBlockOfUnknownSamplesCanBeDescribed) {
  const auto same = [](const Sample& sample) { return sample; };
  const Plan plan(Dataset::range(4).map(same).batch(2));
  EXPECT_NO_THROW((void)run_block(plan, {0, 0, 0, 0}).spec().text());
}

TEST(PlanTest, ASampleOfABatchedDatasetIsARowOfItsBatch) {
  const auto negated = [](const Sample& batch) {
    std::vector<std::int64_t> rows;
    for (const std::int64_t x : batch.tensor().values<std::int64_t>()) rows.push_back(-x);
    return Sample(Tensor::of(rows));
  };
  const Dataset data = Dataset::range(4).batch(2).map(negated);
  EXPECT_EQ(data.sample(1).tensor().item<std::int64_t>(), -1);
}

}  // namespace
}  // namespace penstock
