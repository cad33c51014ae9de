// A thread that waits for a batch looks up now and then; that is how Python notices Ctrl-C.
#include <gtest/gtest.h>

#include <atomic>

#include "base/clock.h"
#include "penstock/penstock.h"

namespace penstock {
namespace {

struct Interrupted {};

/// Samples that are made only once the gate is open, and how often one was asked for.
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

TEST(WhileWaitingTest, WhatItThrowsEndsTheWaitAndTheStepIsStillToCome) {
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
  EXPECT_EQ(gated.calls, 8) << "the wait was given up, not the work";
}

TEST(WhileWaitingTest, IsCalledWithoutLocksSoThatItMayLookAtTheLoader) {
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

TEST(WhileWaitingTest, IsNotCalledWhileNoTimePasses) {
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

}  // namespace
}  // namespace penstock
