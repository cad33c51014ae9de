#include "graph/tail.h"

#include <gtest/gtest.h>

#include <array>

namespace penstock {
namespace {

constexpr std::array kAll{Tail::short_, Tail::drop, Tail::even,
                          Tail::pad,    Tail::wrap, Tail::strict};

TEST(TailTest, EveryPolicyHasANameAndARuleOfItsOwn) {
  for (const Tail tail : kAll) {
    EXPECT_EQ(tail_named(tail_name(tail)), tail);
    EXPECT_EQ(tail_of(rule_of(tail)), tail);
  }
  EXPECT_EQ(tail_name(Tail::short_), "short");
  EXPECT_EQ(tail_named("long"), std::nullopt);
}

TEST(TailTest, ANumberThatIsNoPolicyIsRefused) {
  EXPECT_THROW((void)tail_name(static_cast<Tail>(17)), ConfigError);
}

TEST(TailTest, OnlySomePoliciesMakeOtherStepsThanShortOnes) {
  for (const Tail tail : kAll) {
    bool differs = false;
    for (std::uint64_t count = 0; count < 12; ++count) {
      const Groups groups{count, 4, rule_of(tail)};
      const Groups plain{count, 4, TailRule::keep};
      differs = differs || groups.steps() != plain.steps();
      for (std::uint64_t step = 0; step < groups.steps(); ++step)
        differs = differs || groups.first(step) != plain.first(step) ||
                  groups.size(step) != plain.size(step);
    }
    EXPECT_EQ(changes_steps(tail), differs) << tail_name(tail);
  }
}

}  // namespace
}  // namespace penstock
