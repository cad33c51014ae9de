// Threads that do not come back.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "base/mutex.h"
#include "base/pool.h"
#include "penstock/error.h"

namespace penstock {
namespace {

/// A function that does not return until it is let go.
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
  EXPECT_FALSE(watched.expired()) << "what a thread is inside stays alive";
  gate->open();
  wait_until_all_are_back();
}

TEST(PoolAbandonTest, TooManyAbandonedThreadsRefuseNewWork) {
  const auto gate = std::make_shared<Gate>();
  Pool pool(Pool::kAbandonedMax);
  const auto stuck = stuck_in(gate);
  pool.attach(stuck, Pool::kAbandonedMax);
  gate->wait_for(Pool::kAbandonedMax);
  pool.detach(*stuck, std::chrono::nanoseconds(0));
  EXPECT_THROW(pool.attach(stuck_in(gate), 1), ResourceError);
  gate->open();
  wait_until_all_are_back();
  const auto idle = std::make_shared<Function>([] { return false; });
  pool.attach(idle, 1);
  pool.detach(*idle);
}

}  // namespace
}  // namespace penstock
