#include "plan/empty.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/tail.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string refusal(const Dataset& dataset, std::uint32_t shares, std::optional<Tail> tail = {}) {
  try {
    refuse_empty_shares(*Plan(dataset, {.shares = {shares, 0, 1}, .tail = tail}).data());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(EmptyTest, APlanIsRejectedIfAndOnlyIfAShareIsEmptyAndEveryRemedyWorks) {
  constexpr Tail kTails[] = {Tail::short_, Tail::even, Tail::pad, Tail::drop, Tail::wrap};
  const auto empty_share = [](std::int64_t count, std::int64_t size, std::uint32_t shares,
                              Tail tail) {
    const Plan plan(Dataset::range(count).batch(size), {.shares = {shares, 0, 1}, .tail = tail});
    for (std::uint64_t step = 0; step < plan.steps().count(); ++step)
      if (tail != Tail::pad && plan.cut(step).back() == 0) return true;
    return false;
  };
  for (std::int64_t count = 0; count <= 40; ++count)
    for (std::int64_t size = 1; size <= 12; ++size)
      for (std::uint32_t shares = 1; shares <= 6; ++shares)
        for (const Tail tail : kTails) {
          const std::string said = refusal(Dataset::range(count).batch(size), shares, tail);
          const std::string words =
              fmt::format("{} by {} over {}, {}: {}", count, size, shares, tail_name(tail), said);
          ASSERT_EQ(said != "accepted", empty_share(count, size, shares, tail)) << words;
          if (said == "accepted") continue;
          for (const Tail other : kTails) {
            if (other == Tail::short_) continue;
            const bool works =
                !empty_share(count, size, shares, other) && (other != Tail::drop || count >= size);
            const bool named =
                said.find(fmt::format("tail={}", tail_name(other))) != std::string::npos;
            ASSERT_EQ(named, works) << words;
          }
          if (const auto at = said.find("batch(", said.find("->")); at != std::string::npos) {
            ASSERT_FALSE(empty_share(count, std::stoll(said.substr(at + 6)), shares, tail))
                << words;
          }
          const auto most = said.find("at most ");
          ASSERT_NE(most, std::string::npos) << words;
          const auto fewer = static_cast<std::uint32_t>(std::stoul(said.substr(most + 8)));
          ASSERT_FALSE(empty_share(count, size, fewer, tail)) << words;
        }
}

TEST(EmptyTest, TheErrorContainsTheSizes) {
  EXPECT_THAT(refusal(Dataset::range(97).batch(16), 4),
              AllOf(HasSubstr("batch(16): 3 of 4 shares have no sample in a step of 1"),
                    HasSubstr("N = 97 samples, G = 16, R = 4"), HasSubstr("tail=even"),
                    HasSubstr("tail=drop (loses 1)"), HasSubstr("batch(17)"),
                    HasSubstr("at most 1 process"), HasSubstr("empty=deliver")));
}

TEST(EmptyTest, OnlyExistingStepsCount) {
  const Dataset ten = Dataset::range(10).batch(4);  // 4, 4, 2
  EXPECT_THAT(refusal(ten, 3), HasSubstr("in a step of 2"));
  EXPECT_EQ(refusal(ten.take(2), 3), "accepted");
  EXPECT_THAT(refusal(ten.repeat(), 3), HasSubstr("in a step of 2"));
  EXPECT_THAT(refusal(ten.take(2).concatenate(Dataset::range(9).batch(5)), 5),
              AllOf(HasSubstr("batch(4)"), HasSubstr("1 of 5 shares")));
  EXPECT_EQ(refusal(Dataset::range(10).repeat().batch(4), 3), "accepted");
}

TEST(EmptyTest, AStreamMayEndInASmallStep) {
  const Dataset stream = Dataset::range(100).filter([](std::int64_t x) { return x % 2 == 0; });
  EXPECT_THAT(refusal(stream.batch(8), 4),
              AllOf(HasSubstr("last step of a stream may"), HasSubstr("tail=pad"),
                    HasSubstr("tail=drop"), Not(HasSubstr("tail=even"))));
  EXPECT_EQ(refusal(stream.batch(8), 1), "accepted");
  EXPECT_EQ(refusal(stream.batch(8), 4, Tail::drop), "accepted");
  EXPECT_EQ(refusal(stream.batch(8), 4, Tail::pad), "accepted");
  EXPECT_THAT(refusal(stream.batch(2), 4, Tail::drop),
              AllOf(HasSubstr("2 shares have no sample in any step"), HasSubstr("tail=pad"),
                    Not(HasSubstr("tail=drop"))));
}

}  // namespace
}  // namespace penstock
