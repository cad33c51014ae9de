#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "penstock/plan.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr BatchOptions kStrict{.tail = Tail::strict};

std::string refusal(const Dataset& dataset, std::uint32_t shares = 1,
                    std::optional<Tail> tail = {}) {
  try {
    const Plan plan(dataset, {.shares = {shares, 0, shares}, .tail = tail});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

Dataset strict(std::int64_t count, std::int64_t size) {
  return Dataset::range(count).batch(size, kStrict);
}

TEST(StrictTest, AShortStepIsRejectedWithTheSizesAndRemedies) {
  EXPECT_THAT(refusal(strict(100, 16), 4),
              AllOf(HasSubstr("last step has 4 samples"), HasSubstr("N = 100"), HasSubstr("G = 16"),
                    HasSubstr("R = 4"), HasSubstr("batch(4)"), HasSubstr("batch(20)"),
                    HasSubstr("tail=even"), HasSubstr("tail=drop")));
  EXPECT_EQ(refusal(strict(96, 16), 4), "accepted");
  EXPECT_EQ(refusal(strict(0, 16), 4), "accepted");
}

TEST(StrictTest, SharesOfDifferentSizesAreRejected) {
  EXPECT_THAT(refusal(strict(96, 16), 3),
              AllOf(HasSubstr("differ in size"), HasSubstr("batch(12)"), HasSubstr("batch(24)")));
  EXPECT_THAT(refusal(strict(96, 2), 3), HasSubstr("1 share is left without samples"));
}

TEST(StrictTest, DropIsNotSuggestedIfNothingWouldRemain) {
  EXPECT_THAT(refusal(strict(3, 4)), AllOf(HasSubstr("tail=short"), Not(HasSubstr("tail=drop"))));
}

TEST(StrictTest, EverySuggestedRemedyWorks) {
  for (std::int64_t count = 1; count <= 30; ++count) {
    for (std::int64_t size = 1; size <= 12; ++size) {
      for (std::uint32_t shares = 1; shares <= 5; ++shares) {
        const std::string message = refusal(strict(count, size), shares);
        const bool fits = count % size == 0 && size % shares == 0;
        ASSERT_EQ(message == "accepted", fits) << message;
        if (fits) continue;
        for (std::int64_t other = 1; other <= 40; ++other) {
          if (message.find(fmt::format("batch({})", other)) == std::string::npos) continue;
          ASSERT_EQ(refusal(strict(count, other), shares), "accepted") << message;
        }
      }
    }
  }
}

TEST(StrictTest, OnlyStepsOfThePassAreChecked) {
  EXPECT_EQ(refusal(strict(13, 4).take(3)), "accepted");
  EXPECT_NE(refusal(strict(13, 4).skip(3)), "accepted");
  EXPECT_NE(refusal(strict(13, 4).repeat(2)), "accepted");
  EXPECT_EQ(refusal(strict(13, 4).repeat(0)), "accepted");
  EXPECT_NE(refusal(strict(13, 4).repeat().take(4)), "accepted");
  EXPECT_EQ(refusal(strict(13, 4).repeat(2).take(3)), "accepted");
  EXPECT_NE(refusal(strict(13, 4).repeat(2).skip(2).take(2)), "accepted");
  EXPECT_EQ(refusal(strict(13, 4).repeat(2).skip(4).take(3)), "accepted");
  EXPECT_EQ(refusal(strict(13, 4).shard(2, 0)), "accepted");
  EXPECT_NE(refusal(strict(13, 4).shard(2, 1)), "accepted");
  EXPECT_NE(refusal(strict(13, 4).shuffle().take(1)), "accepted") << "some pass starts with it";
  EXPECT_NE(refusal(strict(12, 4).concatenate(strict(13, 4))), "accepted");
  EXPECT_EQ(refusal(strict(12, 4).concatenate(strict(13, 4)).take(6)), "accepted");
  EXPECT_EQ(refusal(strict(12, 4).concatenate(Dataset::range(13).batch(4))), "accepted");
}

TEST(StrictTest, AStrictPlanIgnoresBatchesWithAnotherTail) {
  EXPECT_NE(refusal(Dataset::range(13).batch(4), 1, Tail::strict), "accepted");
  EXPECT_EQ(refusal(Dataset::range(13).batch(4, {.tail = Tail::short_}), 1, Tail::strict),
            "accepted");
  EXPECT_EQ(refusal(strict(12, 4), 1, Tail::short_), "accepted");
}

TEST(StrictTest, EndlessDataHasNoShortStep) {
  EXPECT_EQ(refusal(Dataset::range(13).repeat().batch(4, kStrict), 2), "accepted");
  EXPECT_THAT(refusal(Dataset::range(13).repeat().batch(4, kStrict), 3),
              AllOf(HasSubstr("N = endless"), HasSubstr("batch(3)"), HasSubstr("batch(6)")));
}

}  // namespace
}  // namespace penstock
