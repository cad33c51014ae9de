#include "run/gang.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <stdexcept>
#include <vector>

#include "base/thread.h"

namespace penstock {
namespace {

using std::chrono::milliseconds;

/// Threads that help whenever they are called, until they are released.
class Helpers {
 public:
  explicit Helpers(int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back("helper", [this] { serve(); });
  }
  ~Helpers() { let_go(); }
  /// Must be called before the gang is destroyed: a helper that wakes late still reads it.
  void let_go() {
    {
      Lock lock(mutex_);
      over_ = true;
      called_.notify_all();
    }
    threads_.clear();
  }
  void call(PoolGang& gang) {
    Lock lock(mutex_);
    gang_ = &gang;
    ++calls_;
    called_.notify_all();
  }
  int calls() {
    Lock lock(mutex_);
    return calls_;
  }

 private:
  void serve() {
    Scratch scratch;
    int served = 0;
    while (true) {
      PoolGang* gang = nullptr;
      {
        Lock lock(mutex_);
        while (calls_ == served && !over_) called_.wait(mutex_);
        if (over_) return;
        served = calls_;
        gang = gang_;
      }
      gang->help(scratch);
    }
  }

  Mutex mutex_;
  Condition called_;
  PoolGang* gang_ PENSTOCK_GUARDED_BY(mutex_) = nullptr;
  int calls_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  bool over_ PENSTOCK_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;
};

/// A body whose rows are costly by the clock, so that the gang shares them.
Gang::Body costly(VirtualClock& clock, std::vector<std::atomic<int>>& times) {
  return [&](std::size_t first, std::size_t rows, const Context&) {
    for (std::size_t row = first; row < first + rows; ++row) {
      if (row == 0) clock.advance(milliseconds(1));
      ++times[row];
    }
  };
}

TEST(GangTest, EveryRowRunsOnceForAnyHelpers) {
  for (const int threads : {0, 1, 3}) {
    VirtualClock clock;
    Helpers helpers(threads);
    PoolGang* self = nullptr;
    PoolGang gang(4, [&] { helpers.call(*self); }, clock);
    self = &gang;
    Scratch scratch;
    for (const std::size_t rows : {0U, 1U, 2U, 3U, 17U, 500U}) {
      std::vector<std::atomic<int>> times(rows);
      gang.run(rows, scratch, costly(clock, times));
      EXPECT_TRUE(std::ranges::all_of(times, [](const auto& count) { return count == 1; }));
      EXPECT_FALSE(gang.wants_help());
    }
    EXPECT_EQ(helpers.calls(), 4) << "for 2 rows and more";
    helpers.let_go();
  }
}

TEST(GangTest, CheapRowsRunOnTheCallingThread) {
  VirtualClock clock;
  int calls = 0;
  PoolGang gang(4, [&] { ++calls; }, clock);
  Scratch scratch;
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  gang.run(1000, scratch, [&](std::size_t first, std::size_t rows, const Context&) {
    parts.emplace_back(first, rows);
  });
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(parts, (std::vector<std::pair<std::size_t, std::size_t>>{{0, 1}, {1, 999}}));
}

TEST(GangTest, ASingleThreadCallsNoHelpers) {
  VirtualClock clock;
  int calls = 0;
  PoolGang gang(1, [&] { ++calls; }, clock);
  Scratch scratch;
  std::vector<std::atomic<int>> times(10);
  gang.run(10, scratch, costly(clock, times));
  EXPECT_EQ(calls, 0);
}

TEST(GangTest, TwoThreadsAreInsideAtOnce) {
  VirtualClock clock;
  Helpers helpers(1);
  PoolGang* self = nullptr;
  PoolGang gang(2, [&] { helpers.call(*self); }, clock);
  self = &gang;
  Scratch scratch;
  Mutex mutex;
  Condition changed;
  int inside = 0;
  // The two rows after the first wait for each other: a single thread would block forever.
  gang.run(3, scratch, [&](std::size_t first, std::size_t, const Context&) {
    if (first == 0) return clock.advance(milliseconds(1));
    Lock lock(mutex);
    ++inside;
    changed.notify_all();
    while (inside < 2) changed.wait(mutex);
  });
  EXPECT_EQ(inside, 2);
  helpers.let_go();
}

TEST(GangTest, AnExceptionReachesTheCallerAndTheGangStaysUsable) {
  for (const std::size_t bad : {0U, 1U, 50U, 99U}) {
    VirtualClock clock;
    Helpers helpers(3);
    PoolGang* self = nullptr;
    PoolGang gang(4, [&] { helpers.call(*self); }, clock);
    self = &gang;
    Scratch scratch;
    std::atomic<int> inside{0};
    EXPECT_THROW(gang.run(100, scratch,
                          [&](std::size_t first, std::size_t, const Context&) {
                            ++inside;
                            if (first == 0) clock.advance(milliseconds(1));
                            --inside;
                            if (first == bad) throw std::runtime_error("bad row");
                          }),
                 std::runtime_error);
    EXPECT_EQ(inside, 0) << "no thread is inside a destroyed body";
    EXPECT_FALSE(gang.wants_help());
    std::vector<std::atomic<int>> times(20);
    gang.run(20, scratch, costly(clock, times));
    EXPECT_TRUE(std::ranges::all_of(times, [](const auto& count) { return count == 1; }));
    helpers.let_go();
  }
}

TEST(GangTest, AnExceptionOfAHelperReachesTheCaller) {
  VirtualClock clock;
  Helpers helpers(1);
  PoolGang* self = nullptr;
  PoolGang gang(2, [&] { helpers.call(*self); }, clock);
  self = &gang;
  Scratch mine;
  Mutex mutex;
  Condition changed;
  bool thrown = false;
  EXPECT_THROW(gang.run(100, mine,
                        [&](std::size_t first, std::size_t, const Context& context) {
                          if (first == 0) return clock.advance(milliseconds(1));
                          Lock lock(mutex);
                          if (&context.scratch != &mine) {
                            thrown = true;
                            changed.notify_all();
                            throw std::runtime_error("of the helper");
                          }
                          while (!thrown) changed.wait(mutex);
                        }),
               std::runtime_error);
  helpers.let_go();
}

TEST(GangTest, HelpAfterTheEndIsANoOp) {
  VirtualClock clock;
  int calls = 0;
  PoolGang gang(2, [&] { ++calls; }, clock);
  Scratch scratch;
  gang.help(scratch);
  std::vector<std::atomic<int>> times(5);
  gang.run(5, scratch, costly(clock, times));
  EXPECT_EQ(calls, 1);
  gang.help(scratch);
  EXPECT_TRUE(std::ranges::all_of(times, [](const auto& count) { return count == 1; }));
}

TEST(GangTest, AHelperComputesOnePieceAndReturns) {
  VirtualClock clock;
  std::atomic<int> rows_of_helper{-1};
  std::atomic<bool> helped{false};
  PoolGang* self = nullptr;
  std::vector<Thread> helper;
  PoolGang gang(
      2,
      [&] {
        helper.emplace_back("helper", [&] {
          Scratch scratch;
          rows_of_helper = 0;
          self->help(scratch);
          helped = true;
        });
      },
      clock);
  self = &gang;
  Scratch mine;
  gang.run(10, mine, [&](std::size_t first, std::size_t, const Context& context) {
    if (first == 0) return clock.advance(milliseconds(1));
    if (&context.scratch != &mine) {
      ++rows_of_helper;
      return;
    }
    while (!helped) yield_thread();  // enough time to take more
  });
  EXPECT_EQ(rows_of_helper, 1);
}

TEST(GangTest, NeedsNoHelpWhileTheLastRowIsComputed) {
  VirtualClock clock;
  PoolGang* self = nullptr;
  PoolGang gang(2, [] {}, clock);
  self = &gang;
  Scratch scratch;
  std::vector<bool> wanted;
  gang.run(4, scratch, [&](std::size_t first, std::size_t, const Context&) {
    if (first == 0) return clock.advance(milliseconds(1));
    wanted.push_back(self->wants_help());
  });
  EXPECT_EQ(wanted, (std::vector<bool>{true, true, false}));
}

}  // namespace
}  // namespace penstock
