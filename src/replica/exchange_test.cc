#include "replica/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/thread.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Runs `body(rank, strategy)` on processes that are threads here, each with two replicas.
template <typename Body>
void on_processes(std::uint32_t world, Body body) {
  LocalGroup group(world);
  std::vector<Thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank)
    threads.emplace_back("process", [&, rank, member = group.join(rank).release()] {
      const std::unique_ptr<Coordinator> own(member);
      MirroredStrategy strategy({"cpu:0", "cpu:1"}, {.coordinator = own.get()});
      body(rank, strategy);
    });
  for (Thread& thread : threads) thread.join();
}

TEST(ExchangeTest, MeansAreOverTheSamplesOfAllProcesses) {
  on_processes(3, [](std::uint32_t, MirroredStrategy& strategy) {
    // 13 samples in steps of 8: the second has 5 for 6 replicas, so that one is empty.
    Feed feed = strategy.distribute(Dataset::range(13).batch(8));
    std::vector<double> means;
    while (const auto step = feed.next()) {
      const auto sums = strategy.run(
          [](Replica&, const Batch& share) {
            Counted<double> sum{0, share.valid_count()};
            for (const auto x : share.values<std::int64_t>()) sum.sum += static_cast<double>(x);
            return sum;
          },
          *step);
      means.push_back(strategy.reduce(Reduce::mean, sums));
    }
    EXPECT_THAT(means, ElementsAre(3.5, 10.0));
  });
}

TEST(ExchangeTest, RowsOfAllProcessesComeInReplicaOrderWithoutPadding) {
  on_processes(2, [](std::uint32_t, MirroredStrategy& strategy) {
    Feed feed = strategy.distribute(Dataset::range(7).batch(7),
                                    {.loader = {.tail = Tail::pad}});  // 2, 2, 2, 1 and padding
    const auto step = feed.next();
    const auto rows = strategy.run(
        [](Replica&, const Batch& share) {
          const auto values = share.values<std::int64_t>();
          return std::vector<std::int64_t>(values.begin(), values.end());
        },
        *step);
    EXPECT_THAT(strategy.gather(rows), ElementsAre(0, 1, 2, 3, 4, 5, 6));
    EXPECT_EQ(strategy.reduce(Reduce::sum, rows, 0), 21);
  });
}

TEST(ExchangeTest, TypesThatDifferBetweenProcessesAreReported) {
  on_processes(2, [](std::uint32_t rank, MirroredStrategy& strategy) {
    const auto reduced = [&] {
      if (rank == 0) {
        (void)strategy.reduce(Reduce::sum, PerReplica<double>({1, 2}));
      } else {
        (void)strategy.reduce(Reduce::sum, PerReplica<std::int64_t>({1, 2}));
      }
    };
    EXPECT_THAT(reduced, ThrowsMessage<ConfigError>(HasSubstr("replica 2 returned i64")));
  });
}

TEST(ExchangeTest, EachReachesReplicasWithoutRowsAndSumsStayInTheProcess) {
  on_processes(2, [](std::uint32_t rank, MirroredStrategy& strategy) {
    std::vector<double> sums(2);
    strategy.each([&](Replica& replica) {
      sums[replica.local_id()] =
          replica.sum_here(Tensor::scalar(static_cast<double>(replica.id() + 1))).item<double>();
    });
    EXPECT_THAT(sums, ElementsAre(rank == 0 ? 3 : 7, rank == 0 ? 3 : 7));
  });
}

}  // namespace
}  // namespace penstock
