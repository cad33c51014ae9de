#include "base/cancel_scope.h"

#include <gtest/gtest.h>

#include "base/thread.h"

namespace penstock {
namespace {

TEST(CancelScopeTest, TheInnermostScopeOfTheThreadDecides) {
  std::atomic<bool> outer_flag{false};
  std::atomic<bool> inner_flag{true};
  EXPECT_FALSE(CancelScope::cancelled());
  const CancelScope outer(outer_flag);
  EXPECT_FALSE(CancelScope::cancelled());
  {
    const CancelScope inner(inner_flag);
    EXPECT_TRUE(CancelScope::cancelled());
  }
  EXPECT_FALSE(CancelScope::cancelled());
  outer_flag = true;
  EXPECT_TRUE(CancelScope::cancelled());
  Thread other("other", [] { EXPECT_FALSE(CancelScope::cancelled()); });
  other.join();
}

}  // namespace
}  // namespace penstock
