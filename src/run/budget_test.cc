#include "run/budget.h"

#include <gtest/gtest.h>

#include <utility>

namespace penstock {
namespace {

TEST(ByteBudgetTest, TakeSucceedsUpToTheLimit) {
  ByteBudget budget(100);
  EXPECT_TRUE(budget.take(60, false));
  EXPECT_FALSE(budget.take(50, false));
  EXPECT_TRUE(budget.take(40, false));
  EXPECT_EQ(budget.used(), 100U);
}

TEST(ByteBudgetTest, ARequiredAmountMayExceedTheLimit) {
  ByteBudget budget(100);
  EXPECT_TRUE(budget.take(500, true));
  EXPECT_FALSE(budget.take(1, false));
  budget.give_back(500);
  EXPECT_TRUE(budget.take(1, false));
}

TEST(BudgetLeaseTest, ALeaseReturnsItsBytesHoweverItEnds) {
  ByteBudget budget(100);
  {
    BudgetLease lease;
    EXPECT_TRUE(lease.take(budget, 60, false));
    BudgetLease second;
    EXPECT_FALSE(second.take(budget, 60, false));
    EXPECT_EQ(second.bytes(), 0U);
    lease.resize(90);
    EXPECT_EQ(budget.used(), 90U);
    lease.resize(20);
    EXPECT_EQ(budget.used(), 20U);
    second = std::move(lease);
    EXPECT_EQ(budget.used(), 20U);
    EXPECT_TRUE(second.take(budget, 30, true)) << "replaces the 20";
    EXPECT_EQ(budget.used(), 30U);
  }
  EXPECT_EQ(budget.used(), 0U);
}

TEST(BudgetLeaseTest, ResizingAnEmptyLeaseIsANoOp) {
  BudgetLease lease;
  lease.resize(50);
  EXPECT_EQ(lease.bytes(), 0U);
}

TEST(ByteBudgetTest, TheBudgetOfTheProcessIsNotEmpty) {
  EXPECT_GT(ByteBudget::process().limit(), 1U << 20);
}

}  // namespace
}  // namespace penstock
