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

}  // namespace
}  // namespace penstock
