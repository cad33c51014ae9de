#include "graph/tail.h"

#include <gtest/gtest.h>

#include <array>

#include "order/steps.h"
#include "penstock/error.h"

namespace penstock {
namespace {

constexpr std::array kAll{Tail::short_, Tail::drop, Tail::even,
                          Tail::pad,    Tail::wrap, Tail::strict};

TEST(TailTest, EveryPolicyHasItsOwnName) {
  for (const Tail tail : kAll) EXPECT_EQ(tail_named(tail_name(tail)), tail);
  EXPECT_EQ(tail_name(Tail::short_), "short");
  EXPECT_EQ(tail_named("long"), std::nullopt);
}

TEST(TailTest, ANumberThatIsNotAPolicyThrows) {
  EXPECT_THROW((void)tail_name(static_cast<Tail>(17)), ConfigError);
}

TEST(TailTest, OnlySomePoliciesChangeSamplesOrSteps) {
  for (const Tail tail : kAll) {
    bool differs = false;
    for (std::uint64_t count = 0; count < 12; ++count) {
      const Groups groups{count, 4, tail};
      const Groups plain{count, 4, Tail::short_};
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
