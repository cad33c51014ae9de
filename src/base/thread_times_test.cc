#include "base/thread_times.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/thread.h"

namespace penstock {
namespace {

TEST(ThreadTimesTest, TheCpuTimeOfAThreadGrowsWhileItWorks) {
  const std::uint64_t before = cpu_time_here();
  while (cpu_time_here() == before) {
  }
  EXPECT_GT(cpu_time_here(), before);
}

TEST(ThreadTimesTest, AThreadThatHasJustStartedHasUsedLessThanOneThatWorked) {
  while (cpu_time_here() < 5'000'000) {
  }
  std::uint64_t other = UINT64_MAX;
  Thread("fresh", [&] { other = cpu_time_here(); }).join();
  EXPECT_LT(other, cpu_time_here());
}

TEST(ThreadTimesTest, TheDelayNeverShrinks) {
  std::uint64_t last = run_delay_here();
  for (int i = 0; i < 100; ++i) {
    yield_thread();
    const std::uint64_t now = run_delay_here();
    EXPECT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace penstock
