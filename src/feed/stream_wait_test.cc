// Blocked streams: which thread is named, which ones keep working, and what a stop leaves behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/blocking_clock_for_tests.h"
#include "base/mutex.h"
#include "base/pool.h"
#include "base/thread.h"
#include "penstock/penstock.h"
#include "penstock/report_sink.h"

namespace penstock {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AnyOf;
using ::testing::HasSubstr;

/// Longer than any number of steps of the clock before it is read.
constexpr auto kAges = std::chrono::hours(100 * 365 * 24);

/// A pool of `threads` threads, on any machine.
class PoolOf {
 public:
  explicit PoolOf(unsigned threads) { Pool::set_shared_threads(threads); }
  ~PoolOf() { Pool::set_shared_threads(0); }
};

/// Collects reports.
class Reports {
 public:
  Reports() {
    before_ = set_report_sink([kept = kept_](const std::string& text) {
      Lock lock(kept->mutex);
      kept->texts.push_back(text);
    });
  }
  ~Reports() { set_report_sink(before_); }
  [[nodiscard]] std::size_t count() const {
    Lock lock(kept_->mutex);
    return kept_->texts.size();
  }
  [[nodiscard]] std::string first() const {
    Lock lock(kept_->mutex);
    return kept_->texts.empty() ? "nothing was reported" : kept_->texts.front();
  }

 private:
  struct Kept {
    Mutex mutex;
    std::vector<std::string> texts PENSTOCK_GUARDED_BY(mutex);
  };
  const std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
  ReportSink before_;
};

/// The report of a wait for the step with the blocked sample; the batches before it are taken
/// first.
std::string report_of(const Dataset& dataset, VirtualClock& clock, int steps_before) {
  const PoolOf two(2);
  const Reports reports;
  Loader loader(dataset.with_options({.name = "train"}), {.threads = 2, .clock = &clock});
  for (int i = 0; i < steps_before; ++i) EXPECT_TRUE(loader.next());
  Thread waker("waker", [&] {
    clock.wait_for_sleepers(1);
    while (reports.count() == 0) {
      clock.advance(seconds(31));
      for (int i = 0; i < 100; ++i) yield_thread();
    }
    clock.advance(kAges);
  });
  EXPECT_TRUE(loader.next());
  waker.join();
  return reports.first();
}

/// Numbers, with a wait of hours at `slow`.
Dataset generated(VirtualClock& clock, std::int64_t slow) {
  return Dataset::from_generator(
      [&clock, slow] {
        return [&clock, slow, i = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
          if (i == slow) clock.pause(kAges);
          if (i == 40) return std::nullopt;
          return i++;
        };
      },
      {.name = "camera"});
}

Dataset slow_map(const Dataset& in, VirtualClock& clock, std::int64_t slow) {
  return in.map(
      [&clock, slow](const Sample& sample) {
        if (sample.tensor().item<std::int64_t>() == slow) clock.pause(kAges);
        return sample;
      },
      {.name = "slow"});
}

/// Saves a state while the generator waits for hours for the element after `taken` batches.
State state_while_it_waits(Loader& loader, VirtualClock& clock, int taken) {
  for (int i = 0; i < taken; ++i) EXPECT_TRUE(loader.next());
  clock.wait_for_sleepers(1);
  clock.advance(seconds(1));
  std::atomic<bool> saved = false;
  Thread waker("waker", [&] {
    while (!saved) {
      clock.advance(milliseconds(100));
      for (int i = 0; i < 100; ++i) yield_thread();
    }
  });
  const State state = loader.state();
  saved = true;
  waker.join();
  return state;
}

TEST(StreamWaitTest, AStateIsSavedWhileTheGeneratorBlocks) {
  const PoolOf two(2);
  BlockingClock clock;
  const Dataset dataset = generated(clock, 12).batch(4);
  Loader loader(dataset, {.threads = 2, .clock = &clock});
  const State state = state_while_it_waits(loader, clock, 3);
  EXPECT_EQ(state.position, 12U);
  ASSERT_TRUE(state.stream);
  EXPECT_EQ(state.stream->next, "") << "the next element is unknown";
  clock.advance(kAges);
  BlockingClock other;
  other.advance(kAges);
  Loader resumed(generated(other, -1).batch(4), {.threads = 2});
  resumed.restore(state);
  EXPECT_THAT(resumed.next()->values<std::int64_t>(), ::testing::ElementsAre(12, 13, 14, 15));
}

TEST(StreamWaitTest, AStateSavedAtAnUnknownEndIsTheStartOfTheNextEpoch) {
  const PoolOf two(2);
  BlockingClock clock;
  Loader loader(generated(clock, 40).batch(4), {.threads = 2, .clock = &clock});
  const State state = state_while_it_waits(loader, clock, 10);
  EXPECT_EQ(state.epoch, 0U);
  EXPECT_EQ(state.position, 40U);
  clock.advance(kAges);
  BlockingClock other;
  Loader resumed(generated(other, -1).batch(4), {.threads = 2});
  resumed.restore(state);
  const auto first = resumed.next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->epoch(), 1U);
  EXPECT_THAT(first->values<std::int64_t>(), ::testing::ElementsAre(0, 1, 2, 3));
}

TEST(StreamWaitTest, ABlockedGeneratorIsNamedWithItsElementAndStep) {
  BlockingClock clock;
  const std::string text = report_of(generated(clock, 13).batch(4), clock, 3);
  EXPECT_THAT(text, HasSubstr("dataset train"));
  EXPECT_THAT(text, HasSubstr("epoch 0, step 3"));
  EXPECT_THAT(text, HasSubstr("from_generator"));
  EXPECT_THAT(text, HasSubstr("camera"));
  EXPECT_THAT(text, HasSubstr("at element 13 (pulling step 3)"));
}

TEST(StreamWaitTest, AGeneratorThatBlocksAtItsStartIsNamed) {
  BlockingClock clock;
  const std::string text = report_of(generated(clock, 0).batch(4), clock, 0);
  EXPECT_THAT(text, HasSubstr("epoch 0, step 0"));
  EXPECT_THAT(text, HasSubstr("camera"));
  EXPECT_THAT(text, HasSubstr("at element 0 (pulling step 0)"));
}

TEST(StreamWaitTest, ABlockedMapOnAStreamIsNamed) {
  BlockingClock clock;
  const std::string text = report_of(slow_map(generated(clock, -1), clock, 9).batch(4), clock, 2);
  EXPECT_THAT(text, HasSubstr("epoch 0, step 2"));
  EXPECT_THAT(text, HasSubstr("map \"slow\""));
  EXPECT_THAT(text, HasSubstr("sample 9 of source 0"));
}

TEST(StreamWaitTest, ABlockedFirstSampleIsNamedWhileTheShapeIsLearned) {
  for (const bool stream : {true, false}) {
    BlockingClock clock;
    const Dataset in = stream ? generated(clock, -1) : Dataset::range(40);
    const std::string text = report_of(slow_map(in, clock, 0).batch(4), clock, 0);
    EXPECT_THAT(text, HasSubstr("epoch 0, step 0"));
    EXPECT_THAT(text, HasSubstr("map \"slow\""));
    EXPECT_THAT(text, HasSubstr(stream ? "at element 0" : "at sample 0"));
  }
}

TEST(StreamWaitTest, ABlockedPredicateBelowAGangIsNamed) {
  BlockingClock clock;
  const Dataset judged = Dataset::range(40).filter(
      [&clock](const Sample& sample) {
        const auto x = sample.tensor().item<std::int64_t>();
        if (x == 13) {
          clock.pause(kAges);
        } else if (x % 4 == 0) {
          clock.advance(milliseconds(1));  // costly, so that several threads share the rest
        }
        return true;
      },
      {.name = "judge"});
  const std::string text = report_of(judged.batch(4), clock, 3);
  EXPECT_THAT(text, HasSubstr("epoch 0, step 3"));
  EXPECT_THAT(text, HasSubstr("filter \"judge\""));
  EXPECT_THAT(text, AnyOf(HasSubstr("at element 13"), HasSubstr("at sample 13")));
}

TEST(StreamWaitTest, ADatasetOfAFlatMapThatBlocksInCloseIsNamedByItsElement) {
  BlockingClock clock;
  struct Closing {
    VirtualClock& clock;
    explicit Closing(VirtualClock& on) : clock(on) {}
    ~Closing() { clock.pause(kAges); }
  };
  const Dataset parts = Dataset::range(40).flat_map(
      [&clock](std::int64_t x) {
        return Dataset::from_generator(
            [&clock, x] {
              const auto closing = x == 6 ? std::make_shared<Closing>(clock) : nullptr;
              return [closing, i = std::int64_t{0}]() mutable {
                return i == 2 ? std::nullopt : std::optional(i++);
              };
            },
            {.name = "a name that is too long to stand inside of a string"});
      },
      {.name = "open"});
  const std::string text = report_of(parts.batch(4), clock, 3);
  EXPECT_THAT(text, HasSubstr("epoch 0, step 3"));
  EXPECT_THAT(text, HasSubstr("flat_map(\"open\""));
  EXPECT_THAT(text, HasSubstr("at element 6"));
}

TEST(StreamWaitTest, AConsumerThatKeepsEveryBatchNeverMakesTheEngineWait) {
  BlockingClock clock;
  const Reports reports;
  const Dataset endless = Dataset::from_generator(
      [] { return [i = std::int64_t{0}]() mutable { return std::optional(i++); }; });
  Loader loader(endless.batch(4), {.threads = 2, .lookahead_bytes = 1000, .clock = &clock});
  std::vector<Batch> kept;
  for (int i = 0; i < 2000; ++i) kept.push_back(*loader.next());
  for (std::size_t i = 0; i < kept.size(); ++i)
    ASSERT_EQ(kept[i].values<std::int64_t>()[0], static_cast<std::int64_t>(i) * 4);
  EXPECT_EQ(reports.count(), 0U);
}

/// An event to wait for.
class Event {
 public:
  void happen() {
    Lock lock(mutex_);
    happened_ = true;
    changed_.notify_all();
  }
  /// False after a long time.
  bool wait() {
    Lock lock(mutex_);
    const Nanoseconds until = Clock::real().now() + seconds(20);
    while (!happened_ && Clock::real().now() < until) changed_.wait_for(mutex_, milliseconds(100));
    return happened_;
  }
  /// An endless stream.
  void wait_for_ever() {
    Lock lock(mutex_);
    while (!happened_) changed_.wait(mutex_);
  }

 private:
  Mutex mutex_;
  Condition changed_;
  bool happened_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

TEST(StreamWaitTest, AReadThatDoesNotReturnIsNamedByItsSourceAndSample) {
  for (const bool stream : {true, false}) {
    BlockingClock clock;
    const Dataset files = Dataset::from_index(40,
                                              [&clock](std::uint64_t i) {
                                                if (i == 13) clock.pause(kAges);
                                                return static_cast<std::int64_t>(i);
                                              },
                                              {.name = "disk"});
    const auto all = [](std::int64_t) { return true; };
    // A filter's input is computed some rows in advance: which steps come before is not certain.
    const Dataset steps = stream ? files.filter(all).batch(40) : files.batch(4);
    const std::string text = report_of(steps, clock, stream ? 0 : 3);
    EXPECT_THAT(text, HasSubstr(stream ? "epoch 0, step 0" : "epoch 0, step 3"));
    EXPECT_THAT(text, HasSubstr("from_index(40, disk)"));
    EXPECT_THAT(text, AnyOf(HasSubstr("element 13"), HasSubstr("sample 13")));
  }
}

TEST(StreamWaitTest, AStallReportSaysIfAllThreadsAreBusyElsewhere) {
  const PoolOf one(1);
  const Reports reports;
  Event inside;
  Event released;
  Loader busy(Dataset::range(8)
                  .map([&](std::int64_t x) {
                    if (x == 0) inside.happen();
                    if (x == 0) released.wait_for_ever();
                    return x;
                  })
                  .batch(4),
              {.threads = 1});
  Thread consumer("consumer", [&] { EXPECT_TRUE(busy.next()); });
  EXPECT_TRUE(inside.wait());
  BlockingClock clock;
  Loader starved(Dataset::range(8).batch(4).with_options({.name = "starved"}),
                 {.threads = 1, .clock = &clock});
  Thread waker("waker", [&] {
    while (reports.count() == 0) {
      clock.advance(seconds(31));
      for (int i = 0; i < 100; ++i) yield_thread();
    }
    released.happen();
  });
  EXPECT_TRUE(starved.next());
  waker.join();
  consumer.join();
  EXPECT_THAT(reports.first(), HasSubstr("dataset starved: no batch for"));
  EXPECT_THAT(reports.first(), HasSubstr("no thread works on it: all are busy with other loaders"));
}

TEST(StreamWaitTest, PulledStepsAreDeliveredWhileTheGeneratorBlocks) {
  for (unsigned threads = 1; threads <= 2; ++threads) {
    const PoolOf pool(threads);
    for (int trial = 0; trial < 20; ++trial) {
      BlockingClock clock;  // does not advance, so that no pull seems long
      Event received;
      std::atomic<bool> in_time{true};
      const Dataset bursts = Dataset::from_generator([&] {
        return [&, i = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
          for (int k = 0; i == 0 && k < 200; ++k) yield_thread();  // other threads fall asleep
          if (i == 12) in_time = received.wait();
          if (i == 16) return std::nullopt;
          return i++;
        };
      });
      Loader loader(bursts.map([](std::int64_t x) { return x; }).batch(4),
                    {.threads = threads, .clock = &clock});
      for (int step = 0; step < 3; ++step) EXPECT_TRUE(loader.next());
      received.happen();
      EXPECT_TRUE(loader.next());
      ASSERT_TRUE(in_time) << threads << " threads";
    }
  }
}

TEST(StreamWaitTest, MapsBeforeAFilterRunOnSeveralThreadsAtOnce) {
  const PoolOf two(2);
  for (const bool stream : {false, true}) {
    BlockingClock clock;
    Event first_in;
    Event second_in;
    std::atomic<int> alone{0};
    const Dataset in = stream ? generated(clock, -1) : Dataset::range(40);
    Loader loader(in.map([&](std::int64_t x) {
                      if (x == 0) clock.advance(milliseconds(1));
                      if (x == 1) {
                        first_in.happen();
                        if (!second_in.wait()) ++alone;
                      }
                      if (x == 2) {
                        second_in.happen();
                        if (!first_in.wait()) ++alone;
                      }
                      return x;
                    })
                      .filter([](std::int64_t x) { return x % 2 == 0; })
                      .batch(8),
                  {.threads = 2, .clock = &clock});
    EXPECT_EQ(loader.next()->rows(), 8U);
    EXPECT_EQ(alone, 0) << "each waited for the other to get in";
  }
}

TEST(StreamWaitTest, MapsAfterAFilterRunOnSeveralThreadsAtOnce) {
  const PoolOf two(2);
  Event first_in;
  Event second_in;
  std::atomic<int> alone{0};
  Loader loader(Dataset::range(400)
                    .filter([](std::int64_t x) { return x % 2 == 0; })
                    .map([&](std::int64_t x) {
                      if (x == 0) {
                        first_in.happen();
                        if (!second_in.wait()) ++alone;
                      }
                      if (x == 100) {
                        second_in.happen();
                        if (!first_in.wait()) ++alone;
                      }
                      return x;
                    })
                    .batch(8),
                {.threads = 2});
  while (loader.next()) {
  }
  EXPECT_EQ(alone, 0);
}

TEST(StreamWaitTest, AGeneratorThatDoesNotReturnIsAbandonedByNameAndMayReturnLater) {
  for (const bool filtered : {false, true}) {
    const auto released = std::make_shared<Event>();
    const auto inside = std::make_shared<Event>();
    const Reports reports;
    {
      const PoolOf two(2);
      const Dataset stuck = Dataset::from_generator(
          [released, inside] {
            return
                [released, inside, i = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
                  if (i == 9) {
                    inside->happen();
                    released->wait_for_ever();
                  }
                  return i++;
                };
          },
          {.name = "stuck"});
      const Dataset rows =
          filtered ? stuck.filter([](std::int64_t x) { return x % 2 == 0; }) : stuck;
      Loader loader(rows.batch(2), {.threads = 2});
      EXPECT_TRUE(loader.next());
      EXPECT_TRUE(inside->wait());
    }
    EXPECT_EQ(Pool::abandoned(), 1U);
    EXPECT_EQ(reports.count(), 1U);
    EXPECT_THAT(reports.first(), HasSubstr("1 thread did not return and was abandoned"));
    EXPECT_THAT(reports.first(), HasSubstr("stuck"));
    EXPECT_THAT(reports.first(), HasSubstr("at element 9"));
    // Its loader and its pool were destroyed, and a new pool exists. The thread must end by itself.
    Loader other(Dataset::range(8).batch(4), {.threads = 2});
    EXPECT_TRUE(other.next());
    released->happen();
    while (Pool::abandoned() > 0) yield_thread();
  }
}

// Samples that a costly map before a filter computes in advance may never be requested.
TEST(StreamWaitTest, NoMoreSlowSamplesAreComputedInAdvanceThanThereAreThreads) {
  const PoolOf three(3);
  BlockingClock clock;
  std::atomic<int> calls{0};
  Loader loader(Dataset::range(1000)
                    .map([&](std::int64_t x) {
                      ++calls;
                      clock.advance(milliseconds(100));
                      return x;
                    })
                    .filter([](std::int64_t) { return true; })
                    .take(6)
                    .batch(2),
                {.threads = 3, .clock = &clock});
  int steps = 0;
  while (loader.next()) ++steps;
  EXPECT_EQ(steps, 3);
  EXPECT_LE(calls, 6 + 3);
}

}  // namespace
}  // namespace penstock
