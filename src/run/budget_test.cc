#include "run/budget.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(ByteBudgetTest, GivesWhatIsLeftAndNoMore) {
  ByteBudget budget(100);
  EXPECT_TRUE(budget.take(60, false));
  EXPECT_FALSE(budget.take(50, false));
  EXPECT_TRUE(budget.take(40, false));
  EXPECT_EQ(budget.used(), 100U);
}

TEST(ByteBudgetTest, WhatMustBeIsGivenBeyondTheLimit) {
  ByteBudget budget(100);
  EXPECT_TRUE(budget.take(500, true));
  EXPECT_FALSE(budget.take(1, false));
  budget.give_back(500);
  EXPECT_TRUE(budget.take(1, false));
}

TEST(ByteBudgetTest, TheProcessHasSome) {
  EXPECT_GT(ByteBudget::process().limit(), 1U << 20);
}

}  // namespace
}  // namespace penstock
