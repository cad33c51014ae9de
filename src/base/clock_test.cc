#include "penstock/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"

namespace penstock {
namespace {

TEST(ClockTest, RealTimeNeverGoesBack) {
  const Nanoseconds before = Clock::real().now();
  EXPECT_LE(before, Clock::real().now());
}

TEST(VirtualClockTest, DoesNotMoveUntilAdvanced) {
  VirtualClock clock;
  const Nanoseconds start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(Nanoseconds(7));
  EXPECT_EQ(clock.now() - start, Nanoseconds(7));
  clock.pause(Nanoseconds(0));
  EXPECT_EQ(clock.now() - start, Nanoseconds(7));
}

TEST(VirtualClockTest, SleepersWakeInTheOrderOfTheirTime) {
  constexpr int kSleepers = 8;
  VirtualClock clock;
  Mutex mutex;
  Condition woke;
  std::vector<int> order;
  std::vector<Thread> sleepers;
  for (int i = kSleepers; i > 0; --i)
    sleepers.emplace_back("sleeper", [&, i] {
      clock.pause(Nanoseconds(i));
      Lock lock(mutex);
      order.push_back(i);
      woke.notify_all();
    });
  clock.wait_for_sleepers(kSleepers);
  for (int i = 1; i <= kSleepers; ++i) {
    clock.advance(Nanoseconds(1));
    Lock lock(mutex);
    while (order.size() < static_cast<std::size_t>(i)) woke.wait(mutex);
    EXPECT_EQ(order.size(), static_cast<std::size_t>(i));
    EXPECT_EQ(order.back(), i);
  }
}

TEST(VirtualClockTest, AThreadThatIsDueNoLongerCountsAsASleeper) {
  constexpr int kRounds = 200;
  VirtualClock clock;
  std::vector<Nanoseconds> woken;
  std::atomic<bool> done = false;
  Thread ticker("ticker", [&] {
    for (int i = 0; i < kRounds; ++i) {
      clock.pause(Nanoseconds(1));
      woken.push_back(clock.now());
    }
    done = true;
  });
  for (int i = 0; i < kRounds; ++i) {
    clock.wait_for_sleepers(1);
    clock.advance(Nanoseconds(1));
  }
  // A ticker whose time has passed still ends.
  while (!done) {
    clock.advance(Nanoseconds(1));
    yield_thread();
  }
  ticker.join();
  for (int i = 0; i + 1 < kRounds; ++i)
    ASSERT_EQ(woken[static_cast<std::size_t>(i)], Nanoseconds(i + 1));
}

}  // namespace
}  // namespace penstock
