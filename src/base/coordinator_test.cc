#include "base/coordinator.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

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
