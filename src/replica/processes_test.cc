// Strategies of a process that is one of several.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/launch_table_for_tests.h"
#include "penstock/coordinator.h"
#include "penstock/strategy.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;

const std::vector<std::string> kTwo{"cpu:0", "cpu:1"};

TEST(ProcessesTest, ReplicasOfAllProcessesShareEachStep) {
  std::map<std::uint64_t, int> seen;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const LaunchTable table(LaunchTable::torchrun(rank, 3));
    MirroredStrategy strategy(kTwo);
    EXPECT_EQ(strategy.num_replicas_in_sync(), 6U);
    Feed feed = strategy.distribute(Dataset::range(103).shuffle({.seed = 7}).batch(16));
    EXPECT_EQ(feed.plan().shares().total, 6U);
    EXPECT_EQ(feed.plan().shares().first, 2 * rank);
    EXPECT_THAT(feed.plan().explain(),
                AllOf(HasSubstr("world: 3 processes, this is " + std::to_string(rank) +
                                " (torchrun), 2 replicas each"),
                      HasSubstr("served here: shares " + std::to_string(2 * rank))));
    std::uint64_t steps = 0;
    while (const auto step = feed.next()) {
      ++steps;
      const auto ids = strategy.run(
          [&](Replica& replica, const Batch& share) {
            EXPECT_EQ(replica.id(), 2 * rank + replica.local_id());
            EXPECT_EQ(replica.num_replicas_in_sync(), 6U);
            return std::vector<std::int64_t>(share.sample_id().begin(), share.sample_id().end());
          },
          *step);
      for (std::size_t r = 0; r < ids.size(); ++r)
        if (ids.has(r))
          for (const std::int64_t id : ids[r]) ++seen[static_cast<std::uint64_t>(id)];
    }
    EXPECT_EQ(steps, 7U);
  }
  EXPECT_EQ(seen.size(), 103U);
  EXPECT_THAT(seen, Each(Pair(testing::_, 1)));
}

TEST(ProcessesTest, APipelineReceivesItsNumberAmongTheProcesses) {
  const LaunchTable table(LaunchTable::torchrun(1, 3));
  OneDeviceStrategy strategy;
  InputContext seen;
  Feed feed = strategy.distribute_from_function([&](const InputContext& context) {
    seen = context;
    return Dataset::range(9).shard(context.pipelines, context.pipeline).batch(1);
  });
  EXPECT_EQ(seen.pipeline, 1U);
  EXPECT_EQ(seen.pipelines, 3U);
  EXPECT_EQ(seen.replicas, 3U);
  EXPECT_EQ(feed.size(), 3U);
}

TEST(ProcessesTest, AStrategyAcceptsEmptyShares) {
  const LaunchTable table(LaunchTable::torchrun(1, 2));
  MirroredStrategy strategy(kTwo);
  Feed feed = strategy.distribute(Dataset::range(10).batch(8));  // 8, 2
  EXPECT_TRUE(feed.next());
  const auto last = feed.next();
  strategy.run([](Replica&, const Batch&) { ADD_FAILURE() << "there is nothing to do"; }, *last);
  EXPECT_FALSE(feed.next());
}

TEST(ProcessesTest, CollectivesOfSeveralProcessesNeedAGroup) {
  const LaunchTable table(LaunchTable::torchrun(1, 2));
  MirroredStrategy strategy(kTwo);
  EXPECT_THAT([&] { (void)strategy.reduce(Reduce::sum, PerReplica<double>({1.0, 2.0})); },
              ThrowsMessage<ConfigError>(HasSubstr("spans 2 processes (torchrun)")));
  const Dataset drawn = Dataset::range(8).shuffle({.seed = Seed::random()}).batch(4);
  EXPECT_THAT([&] { (void)strategy.distribute(drawn); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("2 processes"), HasSubstr("seed"))));
}

TEST(ProcessesTest, AnExplicitRankWinsAndIsChecked) {
  const LaunchTable table(LaunchTable::torchrun(1, 2));
  const MirroredStrategy alone(kTwo, {.process = ProcessRank{}});
  EXPECT_EQ(alone.num_replicas_in_sync(), 2U);
  const OneDeviceStrategy named("cpu:0", {.process = ProcessRank{.rank = 2, .size = 5}});
  EXPECT_EQ(named.num_replicas_in_sync(), 5U);
  const auto refusal = [](const LaunchTable::Variables& variables, const StrategyOptions& options) {
    const LaunchTable inner(variables);
    try {
      const MirroredStrategy strategy(kTwo, options);
      return std::string("accepted");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(refusal({}, {.process = ProcessRank{.rank = 2, .size = 2}}),
              AllOf(HasSubstr("rank=2"), HasSubstr("size=2")));
  EXPECT_THAT(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}, {}),
              AllOf(HasSubstr("RANK=2"), HasSubstr("WORLD_SIZE=2")));
  EXPECT_THAT(refusal(LaunchTable::torchrun(0, 4'000'000'000), {}),
              HasSubstr("4000000000 processes of 2 replicas"));
  LocalGroup group(1);
  const auto coordinator = group.join(0);
  EXPECT_EQ(refusal(LaunchTable::torchrun(1, 2), {.coordinator = coordinator.get()}), "accepted");
  EXPECT_THAT(
      refusal({}, {.coordinator = coordinator.get(), .process = ProcessRank{.rank = 1, .size = 2}}),
      AllOf(HasSubstr("coordinator has rank 0 of 1"), HasSubstr("rank=1")));
}

}  // namespace
}  // namespace penstock
