#include "penstock/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "base/thread.h"
#include "penstock/coordinator.h"
#include "penstock/report_sink.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

double sum_of(const Batch& share) {
  double sum = 0;
  for (const std::int64_t value : share.values<std::int64_t>()) sum += static_cast<double>(value);
  return sum;
}

TEST(StrategyTest, DevicesAreCheckedOneByOne) {
  const auto refusal = [](std::vector<std::string> devices) {
    try {
      const MirroredStrategy strategy(std::move(devices));
      return std::string("accepted");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(refusal({}), AllOf(HasSubstr("0 replicas"), HasSubstr("cpu:0")));
  EXPECT_THAT(refusal({"cpu:0", "cpu:1", "cpu:0"}), HasSubstr("cpu:0 is listed twice"));
  EXPECT_THAT(refusal({"cpu", "/CPU:0"}), HasSubstr("cpu:0 is listed twice"));
  for (const char* const unknown : {"tpu:0", "cpu:", "cpu:x", "cpu:-1", "cpu:9999", ""})
    EXPECT_THAT(
        refusal({"cpu:1", unknown}),
        AllOf(HasSubstr("unknown device \"" + std::string(unknown) + "\""), HasSubstr("cpu:0 to")));
  const MirroredStrategy fine({"/cpu:3", "CPU:1"});
  EXPECT_THAT(fine.devices(), ElementsAre("cpu:3", "cpu:1"));
  const MirroredStrategy cards({"/GPU:1", "cuda"});
  EXPECT_THAT(cards.devices(), ElementsAre("cuda:1", "cuda:0"));
  EXPECT_EQ(fine.num_replicas_in_sync(), 2U);
  EXPECT_THROW(OneDeviceStrategy("tpu"), ConfigError);
}

TEST(StrategyTest, EveryReplicaReceivesItsShare) {
  MirroredStrategy strategy({"cpu:0", "cpu:1", "cpu:2"});
  Feed feed = strategy.distribute(Dataset::range(11).batch(4));
  std::vector<std::string> lines;
  double sum = 0;
  while (auto step = feed.next()) {
    const auto texts = strategy.run(
        [](Replica& replica, const Batch& share) {
          EXPECT_EQ(&Replica::current(), &replica);
          EXPECT_EQ(replica.id(), share.share());
          EXPECT_EQ(replica.count(), share.rows());
          EXPECT_EQ(replica.num_replicas_in_sync(), 3U);
          EXPECT_FALSE(replica.cancelled());
          return replica.device() + ":" + std::to_string(share.rows());
        },
        *step);
    for (std::size_t r = 0; r < texts.size(); ++r)
      if (texts.has(r)) lines.push_back(texts[r]);
    const auto sums =
        strategy.run([](Replica&, const Batch& share) { return sum_of(share); }, *step);
    EXPECT_EQ(sums.count(), step->valid_count());
    sum += strategy.reduce(Reduce::sum, sums);
  }
  EXPECT_THAT(lines, ElementsAre("cpu:0:2", "cpu:1:1", "cpu:2:1", "cpu:0:2", "cpu:1:1", "cpu:2:1",
                                 "cpu:0:1", "cpu:1:1", "cpu:2:1"));
  EXPECT_EQ(sum, 55);
}

TEST(StrategyTest, AnEmptyShareComputesNothingAndCountsAsZero) {
  MirroredStrategy strategy({"cpu:0", "cpu:1", "cpu:2", "cpu:3"});
  Feed feed = strategy.distribute(Dataset::range(10, 12).batch(8));
  const auto step = feed.next();
  std::atomic<int> calls = 0;
  const auto means = strategy.run(
      [&](Replica& replica, const Batch& share) {
        ++calls;
        EXPECT_EQ(replica.all_reduce(Reduce::sum, 1.0), 2.0);
        EXPECT_EQ(replica.all_reduce(Reduce::mean, sum_of(share)), 10.5);
        replica.barrier();
        return sum_of(share) / static_cast<double>(share.rows());
      },
      *step);
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(means.has(1));
  EXPECT_FALSE(means.has(2));
  EXPECT_EQ(means.count(2), 0U);
  EXPECT_EQ(means.count(), 2U);
  EXPECT_THAT([&] { (void)means[2]; }, ThrowsMessage<ConfigError>(HasSubstr("share was empty")));
  EXPECT_THAT([&] { (void)means[4]; }, ThrowsMessage<ConfigError>(HasSubstr("replica 4 of 4")));
  EXPECT_EQ(strategy.reduce(Reduce::mean, means), 10.5);
  EXPECT_THAT(strategy.gather(means), ElementsAre(10, 11));
}

TEST(StrategyTest, AllKindsOfValuesCanBeReduced) {
  MirroredStrategy strategy({"cpu:0", "cpu:1"});
  Feed feed = strategy.distribute(Dataset::range(3).batch(3));  // shares of 2 and 1
  const auto step = feed.next();
  strategy.run(
      [](Replica& replica, const Batch&) {
        const auto id = static_cast<std::int64_t>(replica.id());
        EXPECT_EQ(replica.all_reduce(Reduce::sum, std::int64_t{1} + id), 3);
        EXPECT_EQ(replica.all_reduce(Reduce::mean, id == 0 ? 3.0F : 6.0F), 4.0F);
        EXPECT_THAT(replica.all_reduce(Reduce::sum, std::vector<double>{1.0, 2.0}),
                    ElementsAre(2.0, 4.0));
        EXPECT_THAT(replica.all_reduce(Reduce::sum, std::vector<float>{1.0F}), ElementsAre(2.0F));
        const Counted<std::vector<double>> counted{{1.0, 5.0}, replica.count()};
        EXPECT_THAT(replica.all_reduce(Reduce::mean, counted), ElementsAre(2.0 / 3.0, 10.0 / 3.0));
        const Tensor tensor = Tensor::of(std::vector<std::int64_t>{id, 7});
        EXPECT_THAT(replica.all_reduce(Reduce::sum, tensor).values<std::int64_t>(),
                    ElementsAre(1, 14));
      },
      *step);
  const auto tensors = strategy.run([](Replica&, const Batch& share) { return share[""]; }, *step);
  EXPECT_THAT(strategy.gather(tensors).values<std::int64_t>(), ElementsAre(0, 1, 2));
  EXPECT_EQ(strategy.reduce(Reduce::sum, tensors, 0).item<std::int64_t>(), 3);
  const auto ids = strategy.per_replica([](std::uint32_t replica) { return 2.0 * replica; });
  EXPECT_EQ(strategy.reduce(Reduce::mean, ids), 1.0);
  EXPECT_EQ(strategy.reduce(Reduce::sum, PerReplica<double>({1.0, 2.0}, {3, 1})), 3.0);
  EXPECT_EQ(strategy.reduce(Reduce::mean, PerReplica<double>({1.0, 2.0}, {3, 1})), 1.25);
}

TEST(StrategyTest, AStepOfAnotherStrategyIsRejected) {
  MirroredStrategy strategy({"cpu:0", "cpu:1"});
  OneDeviceStrategy other;
  Feed feed = other.distribute(Dataset::range(4).batch(2));
  auto step = feed.next();
  const auto nothing = [](Replica&, const Batch&) { FAIL(); };
  EXPECT_THAT([&] { strategy.run(nothing, *step); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("feed 1 of another OneDeviceStrategy"),
                                               HasSubstr("distribute the dataset with"))));
  const Step taken = std::move(*step);
  EXPECT_THAT([&] { other.run(nothing, *step); },  // NOLINT: tests the error after a move
              ThrowsMessage<ConfigError>(HasSubstr("moved from")));
}

TEST(StrategyTest, RunAndDistributeInsideRunThrow) {
  MirroredStrategy strategy({"cpu:0", "cpu:1"});
  OneDeviceStrategy other;
  Feed feed = strategy.distribute(Dataset::range(4).batch(2));
  const auto step = feed.next();
  strategy.run(
      [&](Replica&, const Batch&) {
        EXPECT_THAT([&] { strategy.run([](Replica&, const Batch&) {}, *step); },
                    ThrowsMessage<ConfigError>(HasSubstr("run: called inside run")));
        EXPECT_THAT([&] { (void)other.distribute(Dataset::range(4).batch(2)); },
                    ThrowsMessage<ConfigError>(HasSubstr("distribute: called inside run")));
      },
      *step);
}

TEST(StrategyTest, AReplicasCollectivesAreForItsOwnThread) {
  MirroredStrategy strategy({"cpu:0", "cpu:1"});
  Feed feed = strategy.distribute(Dataset::range(4).batch(2));
  strategy.run(
      [&](Replica& replica, const Batch&) {
        Thread thread("helper", [&replica] {
          EXPECT_THAT([&] { replica.barrier(); },
                      ThrowsMessage<ConfigError>(HasSubstr("in another thread")));
          EXPECT_THROW(Replica::current(), ConfigError);
        });
        thread.join();
      },
      *feed.next());
}

TEST(StrategyTest, InsideRunTheStrategyIsCurrent) {
  MirroredStrategy strategy({"cpu:0", "cpu:1", "cpu:2"});
  OneDeviceStrategy outer;
  const Scope scope = outer.scope();
  Feed feed = strategy.distribute(Dataset::range(3).batch(3));
  strategy.run([&](Replica&, const Batch&) { EXPECT_EQ(Strategy::current(), &strategy); },
               *feed.next());
  EXPECT_EQ(Strategy::current(), &outer);
}

TEST(StrategyTest, AFailedStepLeavesTheStrategyAndTheFeedUsable) {
  std::string reports;
  const ReportSink before =
      set_report_sink([&reports](const std::string& text) { reports += text; });
  MirroredStrategy strategy({"cpu:0", "cpu:1", "cpu:2"});
  Feed feed = strategy.distribute(Dataset::range(9).batch(3));
  const auto step = feed.next();
  EXPECT_THAT(
      [&] {
        strategy.run(
            [](Replica& replica, const Batch&) {
              if (replica.id() == 1) throw std::domain_error("replica 1 has had enough");
              replica.barrier();
            },
            *step);
      },
      ThrowsMessage<std::domain_error>("replica 1 has had enough"));
  EXPECT_EQ(reports, "");  // cancelled members are not reported
  EXPECT_THROW(Replica::current(), ConfigError);
  EXPECT_EQ(Strategy::current(), nullptr);
  // The same step again, then the rest.
  double sum = 0;
  const auto add = [&](const Step& one) {
    sum += strategy.reduce(
        Reduce::sum, strategy.run([](Replica&, const Batch& share) { return sum_of(share); }, one));
  };
  add(*step);
  while (auto next = feed.next()) add(*next);
  EXPECT_EQ(sum, 36);
  set_report_sink(before);
}

TEST(StrategyTest, OneDeviceRunsInTheCallersThread) {
  thread_local bool here = false;
  here = true;
  OneDeviceStrategy strategy;
  Feed feed = strategy.distribute(Dataset::range(4).batch(4));
  const auto total = strategy.run(
      [&](Replica& replica, const Batch& share) {
        EXPECT_TRUE(here);
        return replica.all_reduce(Reduce::sum, sum_of(share));
      },
      *feed.next());
  EXPECT_EQ(total[0], 6);
}

TEST(StrategyTest, StepsAndFeedsMayOutliveTheStrategy) {
  auto strategy = std::make_unique<MirroredStrategy>(std::vector<std::string>{"cpu:0", "cpu:1"});
  Feed feed = strategy->distribute(Dataset::range(4).batch(2));
  const auto step = feed.next();
  strategy->run([](Replica&, const Batch&) {}, *step);
  strategy.reset();
  EXPECT_EQ(feed.next()->valid_count(), 2U);
}

TEST(StrategyTest, ProcessesGetTheirSharesOfOnePlan) {
  // Two processes of two replicas: four shares, every sample once.
  LocalGroup group(2);
  std::vector<std::vector<std::uint64_t>> ids(2);
  std::vector<std::string> errors(2);
  std::vector<std::uint32_t> replicas(2);
  std::vector<InputContext> contexts(2);
  std::vector<Thread> threads;
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    threads.emplace_back("rank", [&, rank] {
      const auto coordinator = group.join(rank);
      MirroredStrategy strategy({"cpu:0", "cpu:1"}, {.coordinator = coordinator.get()});
      replicas[rank] = strategy.num_replicas_in_sync();
      Feed feed =
          strategy.distribute(Dataset::range(21).shuffle({.seed = Seed::random()}).batch(8));
      while (auto step = feed.next()) {
        const auto seen = strategy.run(
            [](Replica& replica, const Batch& share) {
              EXPECT_EQ(replica.id(), share.share());
              EXPECT_THAT([&] { replica.barrier(); },
                          ThrowsMessage<ConfigError>(HasSubstr("several processes")));
              return std::vector<std::uint64_t>(share.sample_id().begin(), share.sample_id().end());
            },
            *step);
        for (std::size_t r = 0; r < 2; ++r)
          if (seen.has(r)) ids[rank].insert(ids[rank].end(), seen[r].begin(), seen[r].end());
      }
      EXPECT_EQ(strategy.reduce(Reduce::sum, PerReplica<double>({1.0, 2.0})), 6.0);
      Feed own = strategy.distribute_from_function([&](const InputContext& context) {
        contexts[rank] = context;
        return Dataset::range(8).shard(context.pipelines, context.pipeline).batch(1);
      });
      EXPECT_EQ(own.next()->shares().size(), 2U);
      try {
        (void)strategy.distribute(Dataset::range(20 + rank).batch(8));
      } catch (const ConfigError& error) {
        errors[rank] = error.what();
      }
    });
  for (Thread& thread : threads) thread.join();
  EXPECT_THAT(replicas, Each(4U));
  EXPECT_EQ(contexts[1].pipeline, 1U);
  EXPECT_EQ(contexts[1].pipelines, 2U);
  EXPECT_EQ(contexts[1].replicas, 4U);
  std::vector<std::uint64_t> all = ids[0];
  all.insert(all.end(), ids[1].begin(), ids[1].end());
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), 21U);
  for (std::uint64_t i = 0; i < 21; ++i) EXPECT_EQ(all[i], i);
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("differ in samples of a pass"), HasSubstr("21"))));
}

}  // namespace
}  // namespace penstock
