#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/node.h"

namespace penstock {
namespace {

Steps steps_of(const Dataset& dataset, std::optional<Tail> tail = {}, std::uint64_t seed = 0) {
  return steps_of(*dataset.node(), tail, seed).steps;
}

std::vector<std::uint64_t> firsts(const Steps& steps) {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(steps.count());
  for (std::uint64_t step = 0; step < steps.count(); ++step)
    numbers.push_back(steps.step({}, step).first);
  return numbers;
}

Dataset batches() {
  return Dataset::range(10).batch(3);
}

TEST(StepsOfTest, EveryVerbAfterBatchHasAsManyStepsAsItsCardinality) {
  const auto same = [](const Sample& sample) { return sample; };
  const std::vector<Dataset> datasets = {
      batches(),
      batches().repeat(3),
      batches().repeat(0),
      batches().take(2),
      batches().take(-1),
      batches().take(9),
      batches().skip(1),
      batches().skip(-1),
      batches().skip(9),
      batches().shard(3, 2),
      batches().shuffle(),
      batches().concatenate(Dataset::range(5).batch(1)),
      batches().map(same).map(cast(Dtype::f32)),
      batches().cache().prefetch({.steps = 1}).with_options({.name = "data"}),
      batches().repeat().skip(2).take(5),
      batches().unbatch().batch(4)};
  for (const Dataset& dataset : datasets)
    EXPECT_EQ(steps_of(dataset).count(), dataset.cardinality().count()) << dataset.describe();
  EXPECT_EQ(steps_of(batches().repeat()).count(), kEndless);
}

TEST(StepsOfTest, SlicesAndShardsPickTheStepsTheyName) {
  using Numbers = std::vector<std::uint64_t>;
  EXPECT_EQ(firsts(steps_of(batches())), (Numbers{0, 3, 6, 9}));
  EXPECT_EQ(firsts(steps_of(batches().take(2))), (Numbers{0, 3}));
  EXPECT_EQ(firsts(steps_of(batches().skip(1))), (Numbers{3, 6, 9}));
  EXPECT_EQ(firsts(steps_of(batches().shard(2, 1))), (Numbers{3, 9}));
  EXPECT_EQ(firsts(steps_of(batches().repeat(2).skip(3))), (Numbers{9, 0, 3, 6, 9}));
}

TEST(StepsOfTest, TheDefaultTailAppliesToABatchWithoutOne) {
  const Dataset unnamed = Dataset::range(10).batch(4);
  const Dataset named = Dataset::range(10).batch(4, {.tail = Tail::short_});
  EXPECT_EQ(steps_of(unnamed, std::nullopt).count(), 3U);
  EXPECT_EQ(steps_of(unnamed, Tail::drop).count(), 2U);
  EXPECT_EQ(steps_of(named, Tail::drop).count(), 3U);
  EXPECT_EQ(steps_of(unnamed.concatenate(named), Tail::drop).count(), 5U);
  const Dataset drops = Dataset::range(10).batch(4, {.tail = Tail::drop});
  EXPECT_EQ(drops.node()->groups(Tail::short_)->tail, Tail::drop);
  EXPECT_EQ(Dataset::range(10).repeat().batch(4).node()->groups({})->count, kEndless);
  EXPECT_EQ(Dataset::range(10).node()->groups({}), std::nullopt) << "no batch node";
}

TEST(StepsOfTest, BatchNodesAreNumberedFromLeftToRight) {
  const Dataset one = Dataset::range(2).batch(1);
  const Dataset two = Dataset::range(4).batch(2);
  const Dataset three = Dataset::range(6).batch(3);
  const Dataset all = one.concatenate(two.repeat(2)).concatenate(three);
  const StepsOf found = steps_of(*all.node(), {}, 0);
  EXPECT_EQ(found.leaves,
            (std::vector<const Node*>{one.node().get(), two.node().get(), three.node().get()}));
  std::vector<std::uint32_t> leaves;
  leaves.reserve(found.steps.count());
  for (std::uint64_t step = 0; step < found.steps.count(); ++step)
    leaves.push_back(found.steps.step({}, step).leaf);
  EXPECT_EQ(leaves, (std::vector<std::uint32_t>{0, 0, 1, 1, 1, 1, 2, 2}));
}

TEST(StepsOfTest, ABatchBelowAnUnbatchIsNotALeaf) {
  const Dataset outer = batches().unbatch().batch(4);
  EXPECT_EQ(steps_of(*outer.node(), {}, 0).leaves, (std::vector<const Node*>{outer.node().get()}));
}

TEST(StepsOfTest, ADrawnSeedReplacesOnlyRandomSeeds) {
  const Dataset batched = Dataset::range(40).batch(1);
  const Steps drawn = steps_of(batched.shuffle({.seed = Seed::random()}), {}, 5);
  EXPECT_EQ(firsts(drawn), firsts(steps_of(batched.shuffle({.seed = 5}))));
  EXPECT_NE(firsts(drawn), firsts(steps_of(batched.shuffle({.seed = Seed::random()}), {}, 6)));
  EXPECT_EQ(firsts(steps_of(batched.shuffle({.seed = 8}), {}, 5)),
            firsts(steps_of(batched.shuffle({.seed = 8}), {}, 6)));
}

TEST(StepsOfTest, AShuffleMayKeepItsOrderInEveryPass) {
  const Dataset batched = Dataset::range(40).batch(1);
  const Steps kept = steps_of(batched.shuffle({.seed = 5, .reshuffle_each_epoch = false}));
  const Steps fresh = steps_of(batched.shuffle({.seed = 5}));
  bool moved = false;
  for (std::uint64_t step = 0; step < 40; ++step) {
    EXPECT_EQ(kept.step({1, 0}, step).first, kept.step({0, 0}, step).first);
    moved = moved || fresh.step({1, 0}, step).first != fresh.step({0, 0}, step).first;
  }
  EXPECT_TRUE(moved);
}

TEST(StepsOfTest, SamplesHaveNoSteps) {
  EXPECT_THROW((void)steps_of(Dataset::range(4)), InternalError);
}

}  // namespace
}  // namespace penstock
