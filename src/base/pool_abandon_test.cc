// Threads that do not return.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "base/mutex.h"
#include "base/pool.h"
#include "penstock/error.h"

namespace penstock {
namespace {

/// A function that blocks until it is released.
class Gate {
 public:
  void pass() {
    Lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    while (!open_) changed_.wait(mutex_);
  }
  void wait_for(int inside) {
    Lock lock(mutex_);
    while (inside_ < inside) changed_.wait(mutex_);
  }
  void open() {
    Lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  Mutex mutex_;
  Condition changed_;
  int inside_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  bool open_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

class Function final : public Work {
 public:
  explicit Function(std::function<bool()> body) : body_(std::move(body)) {}
  bool run_one() override { return body_(); }

 private:
  std::function<bool()> body_;
};

std::shared_ptr<Work> stuck_in(const std::shared_ptr<Gate>& gate) {
  return std::make_shared<Function>([gate] {
    gate->pass();
    return false;
  });
}

void wait_until_all_are_back() {
  while (Pool::abandoned() > 0) yield_thread();
}

TEST(PoolAbandonTest, AStuckThreadIsReplacedAndThePoolServesOthers) {
  const auto gate = std::make_shared<Gate>();
  Pool pool(1);
  const auto stuck = stuck_in(gate);
  pool.attach(stuck, 1);
  gate->wait_for(1);
  EXPECT_EQ(pool.detach(*stuck, std::chrono::nanoseconds(0)), 1U);
  EXPECT_EQ(Pool::abandoned(), 1U);

  std::atomic<bool> served{false};
  const auto other = std::make_shared<Function>([&served] {
    served = true;
    return false;
  });
  pool.attach(other, 1);
  while (!served) yield_thread();
  pool.detach(*other);
  gate->open();
  wait_until_all_are_back();
}

TEST(PoolAbandonTest, AnAbandonedThreadMayOutliveItsPool) {
  const auto gate = std::make_shared<Gate>();
  const std::weak_ptr<Work> watched = [&] {
    Pool pool(2);
    const auto stuck = stuck_in(gate);
    pool.attach(stuck, 2);
    gate->wait_for(2);
    EXPECT_EQ(pool.detach(*stuck, std::chrono::nanoseconds(0)), 2U);
    return std::weak_ptr<Work>(stuck);
  }();
  EXPECT_FALSE(watched.expired()) << "an abandoned thread keeps its work alive";
  gate->open();
  wait_until_all_are_back();
}

/// Threads of one pool that are stuck in `gate`, enough to block new work.
void fill_with_stuck(Pool& pool, const std::shared_ptr<Gate>& gate) {
  while (Pool::abandoned() < pool.abandoned_max()) {
    const auto stuck = stuck_in(gate);
    pool.attach(stuck, pool.threads());
    gate->wait_for(static_cast<int>(Pool::abandoned() + pool.threads()));
    pool.detach(*stuck, std::chrono::nanoseconds(0));
  }
}

TEST(PoolAbandonTest, TooManyStuckThreadsBlockNewWork) {
  const auto gate = std::make_shared<Gate>();
  Pool pool(8);
  fill_with_stuck(pool, gate);
  EXPECT_THROW(pool.attach(stuck_in(gate), 1, {.wait_max = std::chrono::nanoseconds(0)}),
               ResourceError);
  gate->open();
  wait_until_all_are_back();
  const auto idle = std::make_shared<Function>([] { return false; });
  pool.attach(idle, 1);
  pool.detach(*idle);
}

TEST(PoolAbandonTest, NewWorkWaitsForThreadsThatAreOnlySlow) {
  const auto gate = std::make_shared<Gate>();
  Pool pool(8);
  fill_with_stuck(pool, gate);
  int looked = 0;
  const auto idle = std::make_shared<Function>([] { return false; });
  pool.attach(idle, 1, {.wait_max = std::chrono::hours(1), .while_waiting = [&] {
                          if (++looked == 2) gate->open();
                        }});
  EXPECT_GE(looked, 2) << "it waited until they returned";
  pool.detach(*idle);
  wait_until_all_are_back();
}

TEST(PoolAbandonTest, AnExceptionOfTheCallbackEndsTheWaitForSlowThreads) {
  struct Interrupted {};
  const auto gate = std::make_shared<Gate>();
  Pool pool(8);
  fill_with_stuck(pool, gate);
  EXPECT_THROW(pool.attach(stuck_in(gate), 1,
                           {.wait_max = std::chrono::hours(1),
                            .while_waiting = [] { throw Interrupted(); }}),
               Interrupted);
  EXPECT_EQ(pool.works(), 0U);
  gate->open();
  wait_until_all_are_back();
}

TEST(PoolAbandonTest, ALoopThatEndsWithEveryThreadStuckDoesNotBlockTheNext) {
  const auto gate = std::make_shared<Gate>();
  Pool pool(16);
  const auto stuck = stuck_in(gate);
  pool.attach(stuck, 16);
  gate->wait_for(16);
  EXPECT_EQ(pool.detach(*stuck, std::chrono::nanoseconds(0)), 16U);
  const auto idle = std::make_shared<Function>([] { return false; });
  pool.attach(idle, 1, {.wait_max = std::chrono::nanoseconds(0)});
  pool.detach(*idle);
  gate->open();
  wait_until_all_are_back();
}

}  // namespace
}  // namespace penstock
