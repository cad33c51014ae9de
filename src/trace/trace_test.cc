#include "trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <set>
#include <vector>

#include "base/thread.h"

namespace penstock::trace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::uint64_t> steps_of(std::uint32_t run) {
  std::vector<std::uint64_t> steps;
  for (const Event& event : events_of(run)) steps.push_back(event.step);
  return steps;
}

/// Runs in a separate thread, which has ended on return.
template <typename Body>
void in_thread(Body body) {
  Thread("recorder", body).join();
}

TEST(TraceTest, EveryRunHasItsOwnNumberAndEvents) {
  const std::uint32_t first = new_run();
  const std::uint32_t second = new_run();
  EXPECT_NE(first, second);
  record({.run = first, .step = 1});
  EXPECT_THAT(steps_of(first), ElementsAre(1));
  EXPECT_THAT(steps_of(second), IsEmpty());
}

TEST(TraceTest, AnEventIsReadBackUnchanged) {
  const std::uint32_t run = new_run();
  record({Kind::waited, run, UINT32_MAX, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - 2});
  const auto events = events_of(run);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, Kind::waited);
  EXPECT_EQ(events[0].run, run);
  EXPECT_EQ(events[0].rows, UINT32_MAX);
  EXPECT_EQ(events[0].step, UINT64_MAX);
  EXPECT_EQ(events[0].start, UINT64_MAX - 1);
  EXPECT_EQ(events[0].end, UINT64_MAX - 2);
}

TEST(TraceTest, EventsAreSortedByTheirEndAndThenByRecordOrder) {
  const std::uint32_t run = new_run();
  record({.run = run, .step = 3, .end = 20});
  in_thread([&] { record({.run = run, .step = 1, .end = 10}); });
  record({.run = run, .step = 2, .end = 10});
  record({.run = run, .step = 4, .end = 20});
  EXPECT_THAT(steps_of(run), ElementsAre(1, 2, 3, 4));
}

TEST(TraceTest, AFullRingKeepsTheLatest) {
  constexpr std::uint64_t kEvents = 10'000;
  const std::uint32_t run = new_run();
  in_thread([&] {
    for (std::uint64_t i = 0; i < kEvents; ++i) record({.run = run, .step = i, .end = i});
  });
  const auto steps = steps_of(run);
  ASSERT_GT(steps.size(), 1000U);
  ASSERT_LT(steps.size(), kEvents);
  for (std::size_t i = 0; i < steps.size(); ++i) ASSERT_EQ(steps[i], kEvents - steps.size() + i);
}

TEST(TraceTest, EventsOfEndedThreadsStayUntilOverwritten) {
  const std::uint32_t run = new_run();
  for (std::uint64_t i = 0; i < 20; ++i)
    in_thread([&] { record({.run = run, .step = i, .end = i}); });
  EXPECT_EQ(steps_of(run).size(), 20U);
}

TEST(TraceTest, AReaderNeverReadsAPartialEvent) {
  const std::uint32_t run = new_run();
  std::atomic<bool> ended = false;
  Thread writer("writer", [&] {
    for (std::uint32_t i = 1; i <= 30'000; ++i) record({Kind::ready, run, i, i, i, i});
    ended = true;
  });
  while (!ended)
    for (const Event& event : events_of(run)) {
      ASSERT_EQ(event.kind, Kind::ready);
      const std::set<std::uint64_t> words{event.rows, event.step, event.start, event.end};
      ASSERT_EQ(words.size(), 1U);
    }
}

/// Returns false if it has not ended after a generous time.
bool ends(pid_t child) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (waitpid(child, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > until) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
      return false;
    }
    yield_thread();
  }
  return true;
}

// A child that ends returns its ring; the thread that held the lock at the fork does not exist
// there.
TEST(TraceTest, AForkedChildCanRecordAndEnd) {
  constexpr std::uint32_t kNoRun = 0xfffffe;
  std::atomic<bool> stop{false};
  std::vector<Thread> busy;
  for (int i = 0; i < 4; ++i)
    busy.emplace_back("busy", [&stop] {
      while (!stop) in_thread([] { record({}); });
    });
  bool good = true;
  for (int i = 0; good && i < 60; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      static_cast<void>(events_of(kNoRun));  // allocates nothing: a sanitizer's allocator may be
                                             // locked
      _exit(0);
    }
    good = child > 0 && ends(child);
    EXPECT_TRUE(good) << "fork " << i;
  }
  stop = true;
}

}  // namespace
}  // namespace penstock::trace
