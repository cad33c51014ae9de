#include "base/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace penstock {
namespace {

TEST(MemoryTest, AvailableMemoryIsPositiveAndAtMostThatOfTheMachine) {
  const std::uint64_t available = memory_available();
  EXPECT_GT(available, std::uint64_t{1} << 20);
  EXPECT_LE(available, static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                           static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

}  // namespace
}  // namespace penstock
