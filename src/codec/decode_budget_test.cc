#include "codec/decode_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>

#include "base/thread.h"

namespace penstock {
namespace {

constexpr std::uint64_t kLarge = DecodeBudget::kCountedBytes;

void wait_for_waiters(const DecodeBudget& budget, std::size_t count) {
  while (budget.waiting() < count) yield_thread();
}

TEST(DecodeBudgetTest, SmallImagesAreNotCounted) {
  DecodeBudget budget(1);
  DecodeBudget::Claim first;
  DecodeBudget::Claim second;
  EXPECT_TRUE(first.add(budget, kLarge - 1));
  EXPECT_TRUE(second.add(budget, kLarge - 1));
  EXPECT_EQ(budget.used(), 0U);
  EXPECT_TRUE(first.add(budget, 1));
  EXPECT_EQ(budget.used(), kLarge);
}

TEST(DecodeBudgetTest, ASingleImageOfAnySizeIsAdmittedAndMayGrow) {
  DecodeBudget budget(1);
  {
    DecodeBudget::Claim claim;
    EXPECT_TRUE(claim.add(budget, 100 * kLarge));
    EXPECT_TRUE(claim.add(budget, kLarge));
    const DecodeBudget::Claim moved(std::move(claim));
    EXPECT_EQ(budget.used(), 101 * kLarge);
  }
  EXPECT_EQ(budget.used(), 0U);
}

TEST(DecodeBudgetTest, LargeImagesWaitForRoomInOrderOfArrival) {
  DecodeBudget budget(3 * kLarge);
  std::optional<DecodeBudget::Claim> first(std::in_place);
  ASSERT_TRUE(first->add(budget, 2 * kLarge));
  std::atomic<int> admitted{0};
  const auto take = [&](std::uint64_t bytes) {
    DecodeBudget::Claim claim;
    EXPECT_TRUE(claim.add(budget, bytes));
    ++admitted;
  };
  Thread second("second", [&] { take(2 * kLarge); });
  wait_for_waiters(budget, 1);
  Thread third("third", [&] { take(kLarge); });  // would fit, but arrived later
  wait_for_waiters(budget, 2);
  EXPECT_EQ(admitted, 0);
  EXPECT_EQ(budget.used(), 2 * kLarge);
  first.reset();
  second.join();
  third.join();
  EXPECT_EQ(admitted, 2);
  EXPECT_EQ(budget.used(), 0U);
}

TEST(DecodeBudgetTest, AnAdmittedImageNeverWaitsForWaitingOnes) {
  DecodeBudget budget(kLarge);
  std::optional<DecodeBudget::Claim> first(std::in_place);
  ASSERT_TRUE(first->add(budget, kLarge));
  Thread second("second", [&] {
    DecodeBudget::Claim claim;
    EXPECT_TRUE(claim.add(budget, kLarge));
  });
  wait_for_waiters(budget, 1);
  EXPECT_TRUE(first->add(budget, 10 * kLarge));
  first.reset();
  second.join();
}

TEST(DecodeBudgetTest, AWaitEndsWhenTheSampleIsCancelledAndOthersContinue) {
  DecodeBudget budget(kLarge);
  std::optional<DecodeBudget::Claim> first(std::in_place);
  ASSERT_TRUE(first->add(budget, kLarge));
  std::atomic<bool> cancelled{false};
  Thread second("second", [&] {
    DecodeBudget::Claim claim;
    EXPECT_FALSE(claim.add(budget, kLarge, [&] { return cancelled.load(); }));
  });
  wait_for_waiters(budget, 1);
  cancelled = true;
  second.join();
  EXPECT_EQ(budget.waiting(), 0U);
  first.reset();
  DecodeBudget::Claim third;
  EXPECT_TRUE(third.add(budget, kLarge));
}

}  // namespace
}  // namespace penstock
