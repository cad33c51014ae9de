// Waits that last too long, and functions that do not return.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "base/blocking_clock_for_tests.h"
#include "penstock/loader.h"
#include "penstock/report_sink.h"

namespace penstock {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(LoaderStallTest, ALongWaitIsReportedWithItsCause) {
  static constexpr auto kAges = hours(100 * 365 * 24);  // however often the clock is read
  std::atomic<int> reports{0};
  std::string text;
  BlockingClock clock;
  const ReportSink before = set_report_sink([&](const std::string& said) {
    if (reports == 0) text = said;
    ++reports;
  });
  Loader loader(Dataset::range(40)
                    .map(
                        [&clock](const Sample& in) {
                          if (in.tensor().item<std::int64_t>() == 13) clock.pause(kAges);
                          return in;
                        },
                        {.name = "slow"})
                    .batch(4)
                    .with_options({.name = "train"}),
                {.threads = 2, .clock = &clock});
  for (int step = 0; step < 3; ++step) EXPECT_TRUE(loader.next());
  Thread waker("waker", [&] {
    clock.wait_for_sleepers(1);
    while (reports == 0) {
      clock.advance(std::chrono::seconds(31));
      for (int i = 0; i < 100; ++i) yield_thread();
    }
    clock.advance(kAges);
  });
  int steps = 0;
  while (loader.next()) ++steps;
  EXPECT_EQ(steps, 7);
  waker.join();
  set_report_sink(before);
  EXPECT_THAT(text, HasSubstr("train"));
  EXPECT_THAT(text, HasSubstr("epoch 0, step 3"));
  EXPECT_THAT(text, HasSubstr("slow"));
  EXPECT_THAT(text, HasSubstr("sample 13 of source 0"));
}

TEST(LoaderStallTest, AStallCanBeAnError) {
  BlockingClock clock;
  Loader loader(
      Dataset::range(8)
          .map([&clock](std::int64_t x) {
            if (x == 5) clock.pause(hours(1));
            return x;
          })
          .batch(4),
      {.threads = 2, .stall_after = milliseconds(100), .stall_is_error = true, .clock = &clock});
  EXPECT_TRUE(loader.next());
  std::atomic<bool> ended{false};
  Thread waker("waker", [&] {
    clock.wait_for_sleepers(1);
    while (!ended) {
      clock.advance(milliseconds(200));
      yield_thread();
    }
  });
  EXPECT_THROW(loader.next(), ResourceError);
  ended = true;
  waker.join();
  clock.advance(hours(2));
}

TEST(LoaderStallTest, AfterStopNoMoreSamplesOfABlockAreComputed) {
  std::atomic<int> calls{0};
  BlockingClock clock;
  Loader loader(Dataset::range(64)
                    .map([&](const Sample& in) {
                      if (++calls == 2) clock.pause(hours(1));
                      return in;
                    })
                    .batch(64),
                {.threads = 1});
  Thread consumer("consumer", [&] { EXPECT_THROW(loader.next(), CancelledError); });
  clock.wait_for_sleepers(1);
  Thread stopper("stopper", [&] { loader.stop(); });
  consumer.join();  // the stop has reached the run
  clock.advance(hours(1));
  stopper.join();
  EXPECT_EQ(calls, 2);
}

TEST(LoaderStallTest, ALoaderEndsEvenIfAFunctionNeverReturns) {
  const auto clock = std::make_shared<VirtualClock>();  // outlives the abandoned thread
  std::string text;
  const ReportSink before = set_report_sink([&text](const std::string& said) { text = said; });
  {
    Loader loader(Dataset::range(8)
                      .map(
                          [clock](const Sample& in) {
                            if (in.tensor().item<std::int64_t>() == 5) clock->pause(hours(1));
                            return in;
                          },
                          {.name = "stuck"})
                      .batch(4),
                  {.threads = 2});
    EXPECT_TRUE(loader.next());
    clock->wait_for_sleepers(1);
  }
  set_report_sink(before);
  EXPECT_EQ(Pool::abandoned(), 1U);
  EXPECT_THAT(text, HasSubstr("stuck"));
  EXPECT_THAT(text, HasSubstr("sample 5"));
  clock->advance(hours(1));
  while (Pool::abandoned() > 0) yield_thread();
}

}  // namespace
}  // namespace penstock
