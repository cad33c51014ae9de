#include "order/cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace penstock {
namespace {

TEST(CutTest, SharesAreContiguousAndBalancedWithTheLargerOnesFirst) {
  for (std::uint64_t rows = 0; rows <= 50; ++rows) {
    for (std::uint64_t shares = 1; shares <= 9; ++shares) {
      const Cut cut{.rows = rows, .shares = shares};
      std::uint64_t next = 0;
      for (std::uint64_t share = 0; share < shares; ++share) {
        ASSERT_EQ(cut.first(share), next) << rows << " rows over " << shares << " shares";
        ASSERT_LE(cut.size(share), cut.size(share == 0 ? 0 : share - 1));
        next += cut.size(share);
      }
      EXPECT_EQ(next, rows) << "over " << shares << " shares";
      EXPECT_LE(cut.size(0) - cut.size(shares - 1), 1U);
    }
  }
}

TEST(CutTest, FewerRowsThanSharesLeaveTheLastSharesEmpty) {
  const Cut cut{.rows = 3, .shares = 8};
  for (std::uint64_t share = 0; share < 8; ++share) {
    EXPECT_EQ(cut.size(share), share < 3 ? 1U : 0U);
    EXPECT_EQ(cut.first(share), std::min<std::uint64_t>(share, 3));
  }
}

TEST(CutTest, PaddedSharesHaveTheSameSlotsInEveryStep) {
  const Cut full{.rows = 16, .shares = 5, .padded_to = 16};
  const Cut last{.rows = 7, .shares = 5, .padded_to = 16};
  EXPECT_EQ(full.slots(), 4U);
  EXPECT_EQ(last.slots(), 4U);
  EXPECT_EQ(last.size(0), 2U) << "samples are cut as in a short step";
  EXPECT_EQ(last.size(4), 1U);
  EXPECT_EQ((Cut{.rows = 2, .shares = 8, .padded_to = 3}.slots()), 1U);
  EXPECT_EQ((Cut{.rows = 7, .shares = 5}.slots()), 0U);
  Place place;
  place.count = 7;
  place.padded_to = 16;
  const Cut cut = cut_of(place, 5);
  EXPECT_EQ(cut.rows, 7U);
  EXPECT_EQ(cut.slots(), 4U);
}

}  // namespace
}  // namespace penstock
