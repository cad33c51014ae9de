// Loaders that are stopped from another thread at any moment, whatever their functions do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/pool.h"
#include "base/thread.h"
#include "penstock/clock.h"
#include "penstock/penstock.h"
#include "penstock/report_sink.h"

namespace penstock {
namespace {

using std::chrono::hours;
using ::testing::AnyOf;
using ::testing::HasSubstr;

enum class Hold : std::uint8_t { pause, spin, wait };

/// Blocks the call with a given number until it is opened.
class Trap {
 public:
  Trap(Hold hold, std::int64_t number) : hold_(hold), number_(number) {}

  void pass(std::int64_t number) {
    if (number != number_) return;
    {
      Lock lock(mutex_);
      if (open_) return;
      ++inside_;
      if (hold_ == Hold::pause) ++pausing_;
      changed_.notify_all();
    }
    if (hold_ == Hold::pause) clock_.pause(hours(1));
    while (hold_ == Hold::spin && !released_) yield_thread();
    Lock lock(mutex_);
    while (!open_) changed_.wait(mutex_);
  }
  void open() {
    released_ = true;
    int sleepers = 0;
    {
      Lock lock(mutex_);
      open_ = true;
      sleepers = std::exchange(pausing_, 0);
      changed_.notify_all();
    }
    // A thread that entered before is asleep, or about to be: advancing the clock earlier would
    // wake none.
    clock_.wait_for_sleepers(sleepers);
    clock_.advance(hours(2));
  }
  void wait_for_somebody() {
    Lock lock(mutex_);
    while (inside_ == 0) changed_.wait(mutex_);
  }

 private:
  const Hold hold_;
  const std::int64_t number_;
  VirtualClock clock_;
  std::atomic<bool> released_{false};
  Mutex mutex_;
  Condition changed_;
  int inside_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  int pausing_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  bool open_ PENSTOCK_GUARDED_BY(mutex_) = false;
};
using TrapPtr = std::shared_ptr<Trap>;  // an abandoned thread may need it much later

constexpr std::int64_t kCount = 60;

Dataset generated(const TrapPtr& trap) {
  return Dataset::from_generator(
      [trap] {
        return [trap, i = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
          if (trap) trap->pass(i);
          if (i == kCount) return std::nullopt;
          return i++;
        };
      },
      {.name = "held"});
}

/// The place of the trap, by number.
constexpr unsigned kPlaces = 9;
Dataset trapped(unsigned place, const TrapPtr& trap) {
  const Dataset indexed = Dataset::range(kCount);
  const auto typed = [trap](std::int64_t x) {
    trap->pass(x);
    return x;
  };
  const auto sampled = [trap](const Sample& sample) {
    trap->pass(sample.tensor().item<std::int64_t>());
    return sample;
  };
  const auto judge = [trap](std::int64_t x) {
    trap->pass(x);
    return x % 3 != 1;
  };
  const auto part = [trap](std::int64_t x) {
    trap->pass(x);
    return Dataset::range(2);
  };
  switch (place) {
    case 0:
      return generated(trap).batch(3);
    case 1:
      return generated(trap).filter([](std::int64_t x) { return x % 2 == 0; }).batch(3);
    case 2:
      return generated(nullptr).map(sampled, {.name = "held"}).batch(3);
    case 3:
      return indexed.map(sampled, {.name = "held"}).batch(3);
    case 4:
      return indexed.map(typed, {.name = "held"})
          .filter([](std::int64_t x) { return x % 2 == 0; })
          .batch(3);
    case 5:
      return generated(nullptr).filter(judge, {.name = "held"}).batch(3);
    case 6:
      return indexed.filter(judge, {.name = "held"}).shuffle({.window = 7}).batch(3);
    case 7:
      return indexed.flat_map(part, {.name = "held"}).batch(3);
    default:
      return generated(nullptr).interleave(part, {.cycle = 4, .name = "held"}).batch(3);
  }
}

std::size_t rest_of(Loader& loader) {
  std::size_t rows = 0;
  while (auto batch = loader.next()) rows += batch->rows();
  return rows;
}

/// Consumes until it is stopped or the epoch ends; returns the number of rows.
std::size_t consume(Loader& loader, std::atomic<bool>& cancelled) {
  try {
    std::size_t rows = 0;
    while (auto batch = loader.next()) rows += batch->rows();
    return rows;
  } catch (const CancelledError&) {
    cancelled = true;
    return 0;
  }
}

int runs() {
  return std::getenv("PENSTOCK_LONG") != nullptr ? 1000 : 200;
}

TEST(StopsTest, AStopAtAnyMomentReturnsAndTheLoaderStaysUsable) {
  std::mt19937 draw(3);  // NOLINT: the same each time
  for (int run = 0; run < runs(); ++run) {
    const auto place = static_cast<unsigned>(draw() % kPlaces);
    const auto number = static_cast<std::int64_t>(draw() % (kCount + 10));  // perhaps none
    const auto threads = static_cast<unsigned>(draw() % 4);
    const auto patience = static_cast<int>(draw() % 60);
    SCOPED_TRACE("run " + std::to_string(run) + " place " + std::to_string(place));
    Pool::set_shared_threads(threads);
    const auto trap = std::make_shared<Trap>(static_cast<Hold>(draw() % 3), number);
    Loader loader(trapped(place, trap), {.threads = threads});
    std::atomic<bool> cancelled{false};
    std::atomic<bool> begun{false};
    Thread consumer("consumer", [&] {
      begun = true;
      consume(loader, cancelled);
    });
    while (!begun) yield_thread();
    for (int i = 0; i < patience; ++i) yield_thread();
    Thread stopper("stopper", [&] { loader.stop(); });
    for (int i = 0; i < patience; ++i) yield_thread();
    trap->open();
    stopper.join();
    // A stop before the consumer's first run is a no-op.
    loader.stop();
    consumer.join();
    ASSERT_EQ(Pool::abandoned(), 0U);
    // It resumes; so does a new loader.
    if (cancelled) {
      const State at = loader.state();
      Loader resumed(trapped(place, trap), {.threads = threads});
      resumed.restore(at);
      // If it was stopped after the last batch, the state is the start of the next epoch.
      std::uint64_t left = rest_of(loader);
      if (left == 0) left = rest_of(loader);
      ASSERT_EQ(rest_of(resumed), left);
    }
    Loader fresh(trapped(place, trap), {.threads = threads});
    ASSERT_GT(rest_of(fresh), 20U);
  }
  Pool::set_shared_threads(0);
}

TEST(StopsTest, AFunctionThatDoesNotReturnIsAbandonedByNameAndTheNextLoaderWorks) {
  for (unsigned place = 0; place < kPlaces; ++place) {
    SCOPED_TRACE("place " + std::to_string(place));
    Pool::set_shared_threads(2);
    const auto texts = std::make_shared<std::string>();
    const ReportSink before =
        set_report_sink([texts](const std::string& said) { *texts += said + "\n"; });
    const auto trap = std::make_shared<Trap>(static_cast<Hold>(place % 3), 12);
    {
      Loader loader(trapped(place, trap), {.threads = 2});
      std::atomic<bool> cancelled{false};
      Thread consumer("consumer", [&] { consume(loader, cancelled); });
      trap->wait_for_somebody();
      // A stop between two calls of next() ends no wait, and the next call starts again.
      while (!cancelled) {
        loader.stop();
        for (int i = 0; i < 10000 && !cancelled; ++i) yield_thread();
      }
      consumer.join();
      EXPECT_GE(Pool::abandoned(), 1U);
      EXPECT_THAT(*texts, AnyOf(HasSubstr("1 thread did not return and was abandoned"),
                                HasSubstr("threads did not return and were abandoned")));
      EXPECT_THAT(*texts, HasSubstr("held"));
      EXPECT_THAT(*texts, AnyOf(HasSubstr(" 12 "), HasSubstr(" more "))) << "or the block it is in";
      Loader other(Dataset::range(30).filter([](std::int64_t) { return true; }).batch(4),
                   {.threads = 2});
      EXPECT_EQ(rest_of(other), 30U) << "while they are stuck";
    }
    trap->open();
    while (Pool::abandoned() > 0) yield_thread();
    Loader again(trapped(place, trap), {.threads = 2});
    EXPECT_GT(rest_of(again), 20U);
    set_report_sink(before);
  }
  Pool::set_shared_threads(0);
}

TEST(StopsTest, ALoaderMayBeDestroyedAtAnyMoment) {
  std::mt19937 draw(5);  // NOLINT: the same each time
  for (int run = 0; run < runs(); ++run) {
    const auto place = static_cast<unsigned>(draw() % kPlaces);
    const auto trap = std::make_shared<Trap>(Hold::wait, -1);  // no call has this number
    Loader loader(trapped(place, trap), {.threads = static_cast<unsigned>(draw() % 3)});
    for (auto steps = draw() % 12; steps > 0; --steps) loader.next();
    for (auto i = draw() % 50; i > 0; --i) yield_thread();
  }
  EXPECT_EQ(Pool::abandoned(), 0U);
}

TEST(StopsTest, StoppingTwiceOrWithoutARunIsANoOp) {
  Loader loader(generated(nullptr).batch(4), {.threads = 2});
  loader.stop();
  EXPECT_TRUE(loader.next());
  loader.stop();
  loader.stop();
  EXPECT_EQ(loader.next()->step(), 1U);
  EXPECT_EQ(rest_of(loader), 52U);
}

}  // namespace
}  // namespace penstock
