#include "penstock/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/thread.h"
#include "penstock/error.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

/// Runs `body` once per rank, each in a thread; returns the error of each rank, or "".
template <typename Body>
std::vector<std::string> on_ranks(std::uint32_t world, Body body) {
  LocalGroup group(world);
  std::vector<std::string> errors(world);
  std::vector<std::unique_ptr<Coordinator>> members;
  for (std::uint32_t rank = 0; rank < world; ++rank) members.push_back(group.join(rank));
  std::vector<Thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank)
    threads.emplace_back("rank", [&, rank] {
      try {
        body(*members[rank]);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
      members[rank].reset();
    });
  for (Thread& thread : threads) thread.join();
  return errors;
}

TEST(CoordinatorTest, RanksOfOneProcessMeetInEveryRound) {
  const auto errors = on_ranks(5, [](Coordinator& member) {
    for (std::uint64_t round = 0; round < 50; ++round) {
      member.barrier();
      EXPECT_EQ(member.share(100 * round + member.rank()), 100 * round);
      EXPECT_EQ(member.agree(round + 5 - member.rank()), round + 1);
      EXPECT_EQ(member.sum(member.rank() == 0 ? 1e16 : 1.0), 1e16 + 0.0);  // rank order: 1s vanish
      member.compare("round", std::to_string(round));
    }
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(CoordinatorTest, DifferingValuesAreReportedOnEveryRank) {
  const auto errors = on_ranks(
      3, [](Coordinator& member) { member.compare("batch", member.rank() == 2 ? "32" : "64"); });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("differ in batch"), HasSubstr("rank 2 has 32"))));
}

TEST(CoordinatorTest, RanksInDifferentCallsAreReported) {
  const auto errors = on_ranks(2, [](Coordinator& member) {
    if (member.rank() == 0) {
      member.barrier();
    } else {
      member.sum(1);
    }
  });
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("rank 0 is in barrier"), HasSubstr("rank 1 in sum"))));
}

TEST(CoordinatorTest, ARankThatLeavesIsNotAwaited) {
  const auto errors = on_ranks(3, [](Coordinator& member) {
    if (member.rank() != 1) member.barrier();
  });
  EXPECT_EQ(errors[1], "");
  EXPECT_THAT(errors[0], HasSubstr("rank 1 has left"));
  EXPECT_THAT(errors[2], HasSubstr("has left"));  // rank 1, or rank 0 after its error
}

TEST(CoordinatorTest, IdsAreInRangeAndTakenOnce) {
  EXPECT_THROW(LocalGroup(0), ConfigError);
  LocalGroup group(2);
  const auto first = group.join(1);
  EXPECT_THAT([&] { group.join(1); },
              ::testing::ThrowsMessage<ConfigError>(HasSubstr("two ranks have the id 1")));
  EXPECT_THAT([&] { group.join(2); },
              ::testing::ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("rank 2 is out of range"), HasSubstr("2 ranks"))));
}

TEST(CoordinatorTest, AWorldOfOneAgreesWithItself) {
  Coordinator& alone = Coordinator::alone();
  EXPECT_EQ(alone.rank(), 0U);
  EXPECT_EQ(alone.world(), 1U);
  alone.barrier();
  alone.compare("order", "abc");
  EXPECT_EQ(alone.share(UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(alone.agree(3), 3U);
  EXPECT_EQ(alone.sum(0.1), 0.1);
}

}  // namespace
}  // namespace penstock
