// A thread that waits for a batch calls `while_waiting` regularly; Python uses it to notice Ctrl-C.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "base/pool.h"
#include "base/thread.h"
#include "penstock/clock.h"
#include "penstock/penstock.h"

namespace penstock {
namespace {

struct Interrupted {};

/// Samples that are computed only after the gate is open, and how often one was requested.
struct Gated {
  std::atomic<bool> open{false};
  std::atomic<int> calls{0};
  Dataset batches() {
    return Dataset::range(8)
        .map([this](std::int64_t x) {
          ++calls;
          open.wait(false);
          return x;
        })
        .batch(4);
  }
  void release() {
    open = true;
    open.notify_all();
  }
};

TEST(WhileWaitingTest, AnExceptionFromWhileWaitingEndsTheWaitAndTheStepFollows) {
  Gated gated;
  bool interrupt = true;
  LoaderOptions options;
  options.threads = 1;
  options.while_waiting = [&] {
    if (interrupt) throw Interrupted();
  };
  Loader loader(gated.batches(), options);
  EXPECT_THROW(loader.next(), Interrupted);
  EXPECT_THROW(loader.next(), Interrupted);
  interrupt = false;
  gated.release();
  for (std::uint64_t step = 0; step < 2; ++step) {
    const auto batch = loader.next();
    ASSERT_TRUE(batch.has_value());
    EXPECT_EQ(batch->step(), step);
  }
  EXPECT_EQ(gated.calls, 8) << "the wait ended, the work continued";
}

TEST(WhileWaitingTest, WhileWaitingIsCalledWithoutLocks) {
  Gated gated;
  int looked = 0;
  Loader* seen = nullptr;
  LoaderOptions options;
  options.threads = 1;
  options.while_waiting = [&] {
    EXPECT_EQ(seen->state().step, 0U);
    EXPECT_FALSE(seen->decisions().size() > 100);
    if (++looked == 2) gated.release();
  };
  Loader loader(gated.batches(), options);
  seen = &loader;
  EXPECT_TRUE(loader.next().has_value());
  EXPECT_GE(looked, 2);
}

TEST(WhileWaitingTest, WhileWaitingIsNotCalledWhileNoTimePasses) {
  VirtualClock clock;
  LoaderOptions options;
  options.clock = &clock;
  options.while_waiting = [] { throw Interrupted(); };
  Loader loader(Dataset::range(100).batch(10), options);
  EXPECT_NO_THROW({
    while (loader.next()) {
    }
  });
}

TEST(WhileWaitingTest, AnExceptionFromWhileWaitingEndsASelectAndItsThreads) {
  std::atomic<int> calls{0};
  const auto dataset = Dataset::range(100'000'000).select([&](std::int64_t) {
    ++calls;
    return true;
  });
  LoaderOptions options;
  options.while_waiting = [&] {
    if (calls > 0) throw Interrupted();
  };
  EXPECT_THROW(Loader(dataset.batch(4), options), Interrupted);
  const int before = calls;
  for (int i = 0; i < 1000; ++i) yield_thread();
  EXPECT_EQ(calls, before) << "no thread continues it";
  EXPECT_EQ(Pool::abandoned(), 0U);
}

TEST(WhileWaitingTest, AnInterruptedSelectCanBeRetried) {
  bool interrupt = true;
  const auto dataset = Dataset::range(5000).select([](std::int64_t x) { return x % 5 == 0; });
  const auto look = [&] {
    if (interrupt) throw Interrupted();
  };
  EXPECT_THROW((void)dataset.resolve(look), Interrupted);
  interrupt = false;
  EXPECT_EQ(dataset.resolve(look).cardinality().count(), 1000U);
}

TEST(WhileWaitingTest, APredicateThatDoesNotReturnIsAbandoned) {
  struct Gate {
    std::atomic<bool> inside{false};
    std::atomic<bool> open{false};
  };
  const auto gate = std::make_shared<Gate>();
  const auto dataset = Dataset::range(4).select([gate](std::int64_t) {
    gate->inside = true;
    gate->open.wait(false);
    return true;
  });
  EXPECT_THROW((void)dataset.resolve([gate] {
    if (gate->inside) throw Interrupted();
  }),
               Interrupted);
  EXPECT_EQ(Pool::abandoned(), 1U);
  gate->open = true;
  gate->open.notify_all();
  while (Pool::abandoned() > 0) yield_thread();
}

}  // namespace
}  // namespace penstock
