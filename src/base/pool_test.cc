#include "base/pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "penstock/error.h"

namespace penstock {
namespace {

class FunctionWork final : public Work {
 public:
  explicit FunctionWork(std::function<bool()> body) : body_(std::move(body)) {}
  bool run_one() override { return body_(); }

 private:
  std::function<bool()> body_;
};

std::shared_ptr<Work> make_work(std::function<bool()> body) {
  return std::make_shared<FunctionWork>(std::move(body));
}

/// Counts finished pieces of work; a consumer waits for all of them.
class Pieces {
 public:
  void add(int count) {
    Lock lock(mutex_);
    todo_ += count;
    open_ += count;
  }
  bool take() {
    Lock lock(mutex_);
    if (todo_ == 0) return false;
    --todo_;
    return true;
  }
  void finish() {
    Lock lock(mutex_);
    --open_;
    all_done_.notify_all();
  }
  void wait_until_done() {
    Lock lock(mutex_);
    while (open_ > 0) all_done_.wait(mutex_);
  }
  std::shared_ptr<Work> as_work() {
    return make_work([this] {
      if (!take()) return false;
      finish();
      return true;
    });
  }

 private:
  Mutex mutex_;
  Condition all_done_;
  int todo_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  int open_ PENSTOCK_GUARDED_BY(mutex_) = 0;
};

std::size_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

class PoolTest : public testing::Test {
 protected:
  PoolTest() { fault::set_yield_seed(5); }
  ~PoolTest() override {
    fault::set_yield_seed(0);
    Pool::set_shared_threads(0);
  }
};

TEST_F(PoolTest, AWakeIsNeverLost) {
  constexpr int kRounds = 3000;
  for (const unsigned threads : {1U, 3U}) {
    Pool pool(threads);
    Pieces often;
    Pieces seldom;
    const auto often_work = often.as_work();
    const auto seldom_work = seldom.as_work();
    pool.attach(often_work, 1);
    pool.attach(seldom_work, threads);
    for (int round = 0; round < kRounds; ++round) {
      Pieces& pieces = round % 5 == 0 ? seldom : often;
      pieces.add(1);
      pool.wake();
      pieces.wait_until_done();
    }
    pool.detach(*often_work);
    pool.detach(*seldom_work);
  }
}

TEST_F(PoolTest, DetachReturnsOnlyWhenNoThreadIsInsideAndNoneWillEnter) {
  Pool pool(3);
  Pieces pieces;
  const auto probe = pieces.as_work();
  pool.attach(probe, 3);
  std::atomic<int> entries = 0;
  std::atomic<int> inside = 0;
  for (int round = 0; round < 300; ++round) {
    std::atomic<bool> entered = false;
    const auto work = make_work([&] {
      ++entries;
      ++inside;
      entered = true;
      entered.notify_all();
      for (int i = 0; i < 20; ++i) yield_thread();
      --inside;
      return true;
    });
    pool.attach(work, 2);
    entered.wait(false);
    pool.detach(*work);
    ASSERT_EQ(inside, 0);
    const int entries_then = entries;
    pieces.add(3);
    pool.wake();
    pieces.wait_until_done();
    ASSERT_EQ(entries, entries_then);
  }
}

TEST_F(PoolTest, AfterDetachThePoolHoldsNoReferenceToTheWork) {
  Pool pool(3);
  for (int round = 0; round < 2000; ++round) {
    std::atomic<bool> entered = false;
    const auto work = make_work([&] {
      entered = true;
      entered.notify_all();
      return true;
    });
    pool.attach(work, 3);
    entered.wait(false);
    pool.detach(*work);
    ASSERT_EQ(work.use_count(), 1) << "round " << round;
  }
}

TEST_F(PoolTest, DetachOfAnUnattachedWorkReturns) {
  Pool pool(1);
  pool.detach(*make_work([] { return false; }));
}

TEST_F(PoolTest, AsManyThreadsAsAllowedAreInsideAndNoMore) {
  constexpr int kThreadsMax = 2;
  Pool pool(4);
  Pieces pieces;
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  const auto look = [&] {
    int before = most;
    while (before < inside && !most.compare_exchange_weak(before, inside)) {
    }
    yield_thread();
  };
  const auto work = make_work([&] {
    if (!pieces.take()) return false;
    ++inside;
    // The first piece waits for another: this proves that two may be inside.
    while (most < kThreadsMax) look();
    for (int i = 0; i < 5; ++i) look();
    --inside;
    pieces.finish();
    return true;
  });
  pieces.add(500);
  pool.attach(work, kThreadsMax);
  pieces.wait_until_done();
  pool.detach(*work);
  EXPECT_EQ(most, kThreadsMax);
}

TEST_F(PoolTest, AWorkWithoutThreadsIsNeverEntered) {
  Pool pool(2);
  std::atomic<bool> entered = false;
  const auto idle = make_work([&] {
    entered = true;
    return true;
  });
  Pieces pieces;
  const auto busy = pieces.as_work();
  pool.attach(idle, 0);
  pool.attach(busy, 2);
  pieces.add(100);
  pool.wake();
  pieces.wait_until_done();
  pool.detach(*idle);
  pool.detach(*busy);
  EXPECT_FALSE(entered);
}

TEST_F(PoolTest, AWorkThatAlwaysHasSomethingDoesNotStarveAnother) {
  Pool pool(1);
  const auto greedy = make_work([] { return true; });
  pool.attach(greedy, 1);
  Pieces pieces;
  pieces.add(100);
  const auto modest = pieces.as_work();
  pool.attach(modest, 1);
  pieces.wait_until_done();
  pool.detach(*greedy);
  pool.detach(*modest);
}

TEST_F(PoolTest, TheSharedPoolIsOneAndEndsWithItsLastHolder) {
  const auto work = make_work([] { return true; });
  Pool::set_shared_threads(3);
  auto first = Pool::shared();
  auto second = Pool::shared();
  EXPECT_EQ(first, second);
  EXPECT_EQ(first->threads(), 3U);
  first->attach(work, 3);
  const std::weak_ptr<Pool> pool = first;
  first.reset();
  ASSERT_FALSE(pool.expired());
  second.reset();
  EXPECT_TRUE(pool.expired());
  // All threads were joined: none is inside any longer, although the work was still attached.
  EXPECT_EQ(work.use_count(), 1);

  Pool::set_shared_threads(1);
  EXPECT_EQ(Pool::shared()->threads(), 1U);
  Pool::set_shared_threads(0);
  EXPECT_EQ(Pool::shared()->threads(), usable_cores());
}

// One thread serves A, B and C in turn. B ran a piece and has another; then the thread polls C, is
// inside A while A detaches, and finds C in the slot of B.
TEST_F(PoolTest, AWorkIsNotMissedWhenAnotherOneDetachesDuringASearch) {
  Pool pool(1);
  std::atomic<bool> go{false};
  std::atomic<int> done{0};
  std::atomic<bool> inside{false};
  std::atomic<bool> leave{false};
  const auto a = make_work([&] {
    if (done != 1) return false;
    inside = true;
    leave.wait(false);
    return false;
  });
  const auto b = make_work([&] {
    if (!go || done == 2) return false;
    ++done;
    return true;
  });
  const auto c = make_work([] { return false; });
  for (const auto& work : {a, b, c}) pool.attach(work, 1);
  go = true;
  pool.wake();
  while (!inside) yield_thread();
  Thread leaver("leaver", [&] { pool.detach(*a); });
  while (pool.works() != 2) yield_thread();
  leave = true;
  leave.notify_all();
  while (done != 2) yield_thread();
  leaver.join();
  pool.detach(*b);
  pool.detach(*c);
}

TEST_F(PoolTest, APoolThatCannotStartAllThreadsEndsTheStartedOnes) {
  const std::size_t before = threads_of_process();
  fault::arm("pool.thread", 3);
  EXPECT_THROW(Pool(4), ResourceError);
  fault::disarm_all();
  // A joined thread may still be listed for a moment.
  for (int i = 0; i < 100'000 && threads_of_process() != before; ++i) yield_thread();
  EXPECT_EQ(threads_of_process(), before);
}

TEST_F(PoolTest, AThreadThatCouldNotBeReplacedIsStartedForTheNextWork) {
  Pool pool(1);
  std::atomic<bool> inside{false};
  std::atomic<bool> leave{false};
  const auto stuck = make_work([&] {
    inside = true;
    leave.wait(false);
    return false;
  });
  pool.attach(stuck, 1);
  while (!inside) yield_thread();
  fault::arm("pool.thread", 1);
  EXPECT_EQ(pool.detach(*stuck, std::chrono::nanoseconds(0)), 1U);
  fault::disarm_all();
  Pieces pieces;
  pieces.add(1);
  const auto work = pieces.as_work();
  pool.attach(work, 1);
  pieces.wait_until_done();
  pool.detach(*work);
  leave = true;
  leave.notify_all();
  while (Pool::abandoned() > 0) yield_thread();
}

TEST_F(PoolTest, KnowsItsOwnThreads) {
  Pool pool(1);
  std::atomic<int> own{-1};
  const auto work = make_work([&] {
    own = Pool::on_own_thread() ? 1 : 0;
    return false;
  });
  pool.attach(work, 1);
  while (own < 0) yield_thread();
  pool.detach(*work);
  EXPECT_EQ(own, 1);
  EXPECT_FALSE(Pool::on_own_thread());
}

TEST_F(PoolTest, APoolHasAtLeastOneThread) {
  EXPECT_EQ(Pool(0).threads(), 1U);
}

}  // namespace
}  // namespace penstock
