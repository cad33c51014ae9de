#include "plan/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "penstock/plan.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Numbers = std::vector<std::uint64_t>;

Program compiled(const Dataset& dataset) {
  return compile(*dataset.node(), {});
}

Sample same(const Sample& sample) {
  return sample;
}

/// All rows of all steps of a pass.
template <typename T>
std::vector<T> values(const Plan& plan, std::uint64_t pass = 0) {
  std::vector<T> all;
  for (std::uint64_t step = 0; step < plan.steps().count(); ++step) {
    const Batch batch = run_block(plan, {pass, step, 0, plan.cut(step)[0]});
    const auto rows = batch.values<T>();
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

Numbers ids(const Dataset& dataset) {
  const Plan plan(dataset);
  Numbers all;
  for (std::uint64_t step = 0; step < plan.steps().count(); ++step) {
    const Batch batch = run_block(plan, {0, step, 0, plan.cut(step)[0]});
    all.insert(all.end(), batch.sample_id().begin(), batch.sample_id().end());
  }
  return all;
}

TEST(ProgramTest, EachBatchNodeHasAChain) {
  const Dataset left = Dataset::range(4).batch(2);
  const Dataset right = Dataset::range(9).batch(3);
  EXPECT_EQ(compiled(left).chains.size(), 1U);
  EXPECT_EQ(compiled(left.repeat(3).take(2)).chains.size(), 1U);
  EXPECT_EQ(compiled(left.concatenate(right).concatenate(left)).chains.size(), 3U);
  EXPECT_EQ(compiled(left.concatenate(right).unbatch().batch(2)).chains.size(), 1U);
}

TEST(ProgramTest, SampleIdsAreNumbersBeforeShuffleRepeatAndBatch) {
  const Dataset data = Dataset::range(100, 104);
  EXPECT_THAT(ids(data.batch(3)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ids(data.repeat(2).batch(3)), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(ids(data.skip(2).batch(3)), ElementsAre(2, 3));
  EXPECT_THAT(ids(data.shard(2, 1).batch(3).unbatch().batch(2)), ElementsAre(1, 3));
  EXPECT_THAT(ids(data.shuffle({.seed = 1}).batch(4)), testing::UnorderedElementsAre(0, 1, 2, 3));
}

TEST(ProgramTest, ConcatenateAddsOffsetsAndZipSharesIds) {
  const Dataset three = Dataset::range(3);
  const Dataset two = Dataset::range(2);
  EXPECT_THAT(ids(three.concatenate(two).concatenate(two).batch(4)),
              ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(ids(two.concatenate(two.concatenate(three)).batch(4)),
              ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(ids(three.batch(2).concatenate(two.batch(2))), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(ids(Dataset::zip({two, three}).batch(4)), ElementsAre(0, 1));
  // All ids of a source are reserved, however many are used.
  EXPECT_THAT(ids(three.take(1).concatenate(two).batch(4)), ElementsAre(0, 3, 4));
  EXPECT_THAT(ids(three.repeat(2).concatenate(two).batch(8)), ElementsAre(0, 1, 2, 0, 1, 2, 3, 4));
  EXPECT_THAT(ids(Dataset::zip({two, three}).concatenate(Dataset::zip({two, two})).batch(4)),
              ElementsAre(0, 1, 2, 3));
}

TEST(ProgramTest, SourcesAreNumberedFromLeftToRight) {
  const Dataset three = Dataset::range(3);
  const Dataset nothing = Dataset::range(0);
  const Program program = compiled(three.concatenate(nothing).concatenate(three).batch(2));
  const IdSpace& space = program.chains[0].samples->ids();
  EXPECT_EQ(space.key(2), (SampleKey{0, 2}));
  EXPECT_EQ(space.key(3), (SampleKey{2, 0}));
  const Program zipped =
      compiled(Dataset::zip({three, three}).concatenate(Dataset::zip({three, three})).batch(2));
  EXPECT_EQ(zipped.chains[0].samples->ids().key(4), (SampleKey{2, 1}));
}

TEST(ProgramTest, MapsAfterAFunctionOfWholeBatchesRunAfterIt) {
  const Dataset batches = Dataset::range(4).batch(2).map(cast(Dtype::i32));
  EXPECT_THAT(compiled(batches).chains[0].whole, IsEmpty());
  const Program program = compiled(batches.map(same).map(cast(Dtype::f32)));
  ASSERT_EQ(program.chains[0].whole.size(), 2U);
  EXPECT_EQ(program.chains[0].samples->spec().text(), "i32[]");
  EXPECT_EQ(program.chains[0].whole[0].spec.text(), "i32[]");
  EXPECT_EQ(program.chains[0].whole[1].spec.text(), "f32[]");
  EXPECT_EQ(program.spec.text(), "f32[]");
}

TEST(ProgramTest, OpsAreTitledByTheirOrderInTheDataset) {
  const Program program = compiled(
      Dataset::range(4).map(cast(Dtype::i32)).batch(2).map(same, {.name = "one"}).map(same));
  EXPECT_EQ(program.chains[0].whole[0].place.title, "map \"one\" (Sample) -> Sample#1");
  EXPECT_EQ(program.chains[0].whole[1].place.title, "map (Sample) -> Sample#2");
}

TEST(ProgramTest, ARowWiseMapAfterBatchIsTheSameAsBeforeIt) {
  const auto jitter = [](std::int64_t x, Rng& rng) {
    return x * 1000 + static_cast<std::int64_t>(rng.integer(1000));
  };
  const Dataset data = Dataset::range(7).repeat(2).shuffle();
  EXPECT_EQ(values<std::int64_t>(Plan(data.map(jitter).batch(3))),
            values<std::int64_t>(Plan(data.batch(3).map(jitter))));
}

TEST(ProgramTest, OnlyRandomOpsRequestOccurrences) {
  const auto jitter = [](std::int64_t x, Rng&) { return x; };
  EXPECT_FALSE(compiled(Dataset::range(4).map(cast(Dtype::i32)).batch(2)).random);
  EXPECT_TRUE(compiled(Dataset::range(4).map(jitter).batch(2)).random);
  EXPECT_TRUE(compiled(Dataset::range(4).map(jitter).batch(2).unbatch().batch(3)).random);
}

TEST(ProgramTest, TwoRandomOpsWithOneSeedDrawOtherNumbers) {
  const auto draw = [](const Sample& sample, Rng& rng) {
    std::vector<Sample> parts;
    for (const Tensor& leaf : sample.leaves()) parts.emplace_back(leaf.kept());
    parts.emplace_back(Tensor::scalar(rng()));
    return Sample::tuple(std::move(parts));
  };
  const Plan plan(Dataset::range(1).map(draw).map(draw).batch(1));
  const Batch batch = run_block(plan, {0, 0, 0, 1});
  EXPECT_NE(batch.values<std::uint64_t>("1")[0], batch.values<std::uint64_t>("2")[0]);
}

TEST(ProgramTest, RepeatsDrawNewNumbersAndRerunsTheSame) {
  const auto draw = [](std::int64_t, Rng& rng) { return rng(); };
  const Plan plan(Dataset::range(2).map(draw).repeat(2).batch(2).repeat(2));
  const auto first = values<std::uint64_t>(plan);
  EXPECT_EQ(first, values<std::uint64_t>(plan));
  std::vector<std::uint64_t> all = values<std::uint64_t>(plan, 1);
  all.insert(all.end(), first.begin(), first.end());
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::unique(all).begin(), all.end()) << "two draws are equal";
  EXPECT_EQ(all.size(), 16U);
}

TEST(ProgramTest, OccurrencesContinueAboveACacheOfRepeatedData) {
  const auto draw = [](std::int64_t, Rng& rng) { return rng(); };
  const Dataset data = Dataset::range(2).repeat(3).take(5).repeat(2);
  EXPECT_EQ(values<std::uint64_t>(Plan(data.cache().repeat(2).map(draw).batch(5))),
            values<std::uint64_t>(Plan(data.repeat(2).map(draw).batch(5))));
}

TEST(ProgramTest, ZipNotesUnusedSamples) {
  const Dataset five = Dataset::range(5);
  const Dataset three = Dataset::range(3);
  EXPECT_THAT(compiled(Dataset::zip({five, three}).batch(2)).notes,
              ElementsAre("zip: 2 of the 5 samples of part 0 are unused"));
  EXPECT_THAT(compiled(Dataset::zip({three, three, three.repeat()}).batch(2)).notes, IsEmpty());
}

TEST(ProgramTest, ACacheIsSharedByAllProgramsOfOneDataset) {
  const auto calls = std::make_shared<std::atomic<int>>(0);
  const Dataset data = Dataset::from_index(6, [calls](std::uint64_t i) {
    ++*calls;
    return static_cast<std::int64_t>(i);
  });
  const Dataset cached = data.cache().batch(2);
  EXPECT_EQ(values<std::int64_t>(Plan(cached)), values<std::int64_t>(Plan(cached), 1));
  EXPECT_EQ(*calls, 6);
}

TEST(ProgramTest, ACacheBelowADrawnSeedBelongsToOnePlan) {
  const Dataset data = Dataset::range(40).shuffle({.seed = Seed::random()}).cache().batch(40);
  const Plan one(data, {.drawn_seed = 1});
  const Plan other(data, {.drawn_seed = 2});
  EXPECT_NE(values<std::int64_t>(one), values<std::int64_t>(other));
  EXPECT_EQ(values<std::int64_t>(one), values<std::int64_t>(one, 5));
}

TEST(ProgramTest, ARandomSeedIsFoundInAShuffleAnywhere) {
  const Dataset data = Dataset::range(4);
  const Dataset drawn = data.shuffle({.seed = Seed::random()});
  const std::vector<Dataset> wanting = {drawn, drawn.take(1).batch(2), data.concatenate(drawn),
                                        Dataset::zip({data, drawn}).batch(2).unbatch(),
                                        data.batch(2).shuffle({.seed = Seed::random()}).repeat()};
  for (const Dataset& dataset : wanting) EXPECT_TRUE(wants_drawn_seed(*dataset.node()));
  EXPECT_FALSE(wants_drawn_seed(*data.shuffle({.seed = 9}).batch(2).node()));
}

TEST(ProgramTest, SamplesAreCompiledWithoutABatch) {
  const Dataset left = Dataset::range(4);
  const StagePtr stage = compile_samples(*left.concatenate(left.take(2)).node(), {});
  EXPECT_EQ(stage->spec().text(), "i64[]");
  EXPECT_EQ(stage->ids().key(5), (SampleKey{1, 1}));
}

TEST(ProgramTest, ACacheUsedTwiceKeepsTheIdsOfEachPlace) {
  const Dataset cached = Dataset::range(3).cache();
  const Plan both(cached.concatenate(cached).batch(6));
  const Batch batch = run_block(both, {0, 0, 0, 6});
  EXPECT_THAT(batch.sample_id(), ElementsAre(0, 1, 2, 3, 4, 5));
  const Plan alone(cached.batch(3));
  EXPECT_THAT(run_block(alone, {0, 0, 0, 3}).sample_id(), ElementsAre(0, 1, 2));
}

TEST(ProgramTest, SidesOfConcatenateWithDifferentFieldsAreASampleError) {
  const auto byte = [](std::uint64_t i) {
    return Sample(Tensor::scalar(static_cast<std::uint8_t>(i)));
  };
  const Dataset data = Dataset::from_index(2, byte).concatenate(Dataset::range(200));
  EXPECT_THROW((void)run_block(Plan(data.batch(202)), {0, 0, 0, 202}), SampleError);
}

}  // namespace
}  // namespace penstock
