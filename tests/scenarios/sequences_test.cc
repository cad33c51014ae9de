// Programs with batches by index.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <system_error>

#include "base/mutex.h"
#include "base/pool.h"
#include "base/thread.h"
#include "penstock/clock.h"
#include "penstock/penstock.h"
#include "penstock/report_sink.h"

namespace penstock::scenario {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A user's Sequence: batches of the numbers from 0 on, `sizes[i]` in batch i.
class Batches : public Sequence {
 public:
  explicit Batches(std::vector<std::int64_t> sizes)
      : num_batches(sizes.size()), sizes_(std::move(sizes)), asked(sizes_.size()) {}
  [[nodiscard]] std::uint64_t size() const override { return num_batches; }
  Sample get(std::uint64_t index) override {
    ++asked[index];
    std::int64_t first = 0;
    for (std::uint64_t i = 0; i < index; ++i) first += sizes_[i];
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < sizes_[index]; ++i) values.push_back(first + i);
    return Sample::dict({{"x", Tensor::of(values)}});
  }
  std::size_t num_batches;  // users may name attributes as they like

 private:
  std::vector<std::int64_t> sizes_;

 public:
  std::vector<std::atomic<int>> asked;
};

struct Seen {
  std::uint64_t steps = 0;
  std::vector<std::int64_t> samples;
  double mean_of_means = 0;  // over steps, each exact over its samples
};

/// One epoch of a distributed loop; the loss of a sample is its number.
Seen epoch(Strategy& strategy, Feed& feed) {
  Seen seen;
  while (const auto step = feed.next()) {
    const auto sums = strategy.run(
        [](Replica&, const Batch& share) {
          Counted<double> sum{0, share.valid_count()};
          for (const auto x : share.values<std::int64_t>("x")) sum.sum += static_cast<double>(x);
          return sum;
        },
        *step);
    seen.mean_of_means += strategy.reduce(Reduce::mean, sums);
    for (const Batch& share : step->shares())
      for (const auto x : share.values<std::int64_t>("x")) seen.samples.push_back(x);
    ++seen.steps;
  }
  return seen;
}

/// In the order of the Sequence if the seed is 0, otherwise shuffled.
Seen one_epoch(const std::vector<std::int64_t>& sizes, std::size_t replicas,
               std::uint64_t seed = 0) {
  std::vector<std::string> devices;
  for (std::size_t r = 0; r < replicas; ++r) devices.push_back("cpu:" + std::to_string(r));
  MirroredStrategy strategy(devices);
  auto batches = Dataset::from_sequence(std::make_shared<Batches>(sizes));
  if (seed > 0) batches = batches.shuffle({.seed = seed});
  auto feed = strategy.distribute(batches);
  return epoch(strategy, feed);
}

/// The expected `Seen::mean_of_means`: samples are numbered batch by batch.
double mean_of_means_by_hand(const std::vector<std::int64_t>& sizes) {
  double sum = 0;
  std::int64_t first = 0;
  for (const std::int64_t size : sizes) {
    sum += static_cast<double>(first) + static_cast<double>(size - 1) / 2;
    first += size;
  }
  return sum;
}

void expect_once(std::vector<std::int64_t> samples, std::int64_t count) {
  std::ranges::sort(samples);
  ASSERT_EQ(static_cast<std::int64_t>(samples.size()), count);
  for (std::int64_t i = 0; i < count; ++i) EXPECT_EQ(samples[static_cast<std::size_t>(i)], i);
}

TEST(Scenario, a000_sequence_uneven) {
  const Seen one = one_epoch(std::vector<std::int64_t>(7, 3), 1);
  for (const std::size_t replicas : {2U, 3U, 4U}) {
    const Seen seen = one_epoch(std::vector<std::int64_t>(7, 3), replicas);
    EXPECT_EQ(seen.steps, 7U);
    expect_once(seen.samples, 21);
    EXPECT_NEAR(seen.mean_of_means, one.mean_of_means, 1e-12);
  }
}

TEST(Scenario, a000_sequence_even) {
  const auto sequence = std::make_shared<Batches>(std::vector<std::int64_t>(7, 4));
  {
    MirroredStrategy strategy({"cpu:0", "cpu:1"});
    auto feed = strategy.distribute(Dataset::from_sequence(sequence));
    EXPECT_EQ(epoch(strategy, feed).steps, 7U);
    for (const auto& asked : sequence->asked) EXPECT_EQ(asked, 1);
  }
  // One index is requested again, at the very end.
  int all = 0;
  for (const auto& asked : sequence->asked) all += asked;
  EXPECT_EQ(all, 8);
}

TEST(Scenario, a000_sequence_odd_batch) {
  for (std::size_t odd = 0; odd < 7; ++odd) {
    std::vector<std::int64_t> sizes(7, 4);
    sizes[odd] = 3;
    for (const std::size_t replicas : {1U, 2U, 3U})
      for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) {
        const Seen seen = one_epoch(sizes, replicas, seed);
        EXPECT_EQ(seen.steps, 7U);
        expect_once(seen.samples, 27);
        EXPECT_NEAR(seen.mean_of_means, mean_of_means_by_hand(sizes), 1e-12);
      }
  }
}

/// Collects reports during its lifetime.
class Reports {
 public:
  Reports() {
    before_ = set_report_sink([this](const std::string& text) {
      Lock lock(mutex_);
      all_ += text + "\n";
    });
  }
  ~Reports() { set_report_sink(before_); }
  Reports(const Reports&) = delete;
  Reports& operator=(const Reports&) = delete;
  std::string all() {
    Lock lock(mutex_);
    return all_;
  }

 private:
  ReportSink before_;
  Mutex mutex_;
  std::string all_;
};

/// Returns the next entry of its own list, whatever the index.
class Popping : public Sequence {
 public:
  explicit Popping(std::int64_t count) : left_(count) {}
  [[nodiscard]] std::uint64_t size() const override { return 7; }
  Sample get(std::uint64_t) override {
    if (left_ == 0) throw std::out_of_range("pop from empty list");
    --left_;
    return Sample::dict({{"x", Tensor::of(std::vector<std::int64_t>{6 - left_})}});
  }

 private:
  std::int64_t left_;
};

TEST(Scenario, a000_popping_sequence) {
  Reports reports;
  {
    Loader loader(Dataset::from_sequence(std::make_shared<Popping>(7)), {.threads = 1});
    std::vector<std::int64_t> samples;
    while (const auto batch = loader.next()) samples.push_back(batch->values<std::int64_t>("x")[0]);
    expect_once(samples, 7);
    EXPECT_EQ(reports.all(), "");
  }
  EXPECT_THAT(reports.all(), AllOf(HasSubstr("get(0)"), HasSubstr("depend on the index alone")));
}

TEST(Scenario, a003_inner_iterator) {
  Reports reports;
  {
    Loader loader(Dataset::from_sequence(std::make_shared<Popping>(100)), {.threads = 1});
    std::vector<std::int64_t> samples;
    while (const auto batch = loader.next())
      samples.push_back(batch->values<std::int64_t>("x")[0] + 93);  // it began with 100 left
    expect_once(samples, 7);
  }
  EXPECT_THAT(reports.all(),
              AllOf(HasSubstr("returned a different batch"), HasSubstr("from_generator")));
}

/// The second get waits for a third one to start, as long as other threads get a turn.
class Slow : public Batches {
 public:
  using Batches::Batches;
  Sample get(std::uint64_t index) override {
    const int now = ++inside_;
    most = std::max(most.load(), now);
    // The first get shows the fields of a row.
    for (int i = 0; index == 1 && most < 2 && i < 1'000'000; ++i) yield_thread();
    --inside_;
    return Batches::get(index);
  }
  std::atomic<int> most = 0;

 private:
  std::atomic<int> inside_ = 0;
};

TEST(Scenario, a003_slow_sequence) {
  Pool::set_shared_threads(2);
  const auto slow = std::make_shared<Slow>(std::vector<std::int64_t>(20, 2));
  {
    Loader loader(Dataset::from_sequence(slow, {.check = false}));
    std::int64_t next = 0;
    while (const auto batch = loader.next())
      for (const auto x : batch->values<std::int64_t>("x")) EXPECT_EQ(x, next++);
    EXPECT_EQ(next, 40);
  }
  EXPECT_GT(slow->most, 1) << "one after the other";
  Pool::set_shared_threads(0);
}

TEST(Scenario, c_workers_epochs) {
  MirroredStrategy strategy({"cpu:0", "cpu:1"});
  auto feed = strategy.distribute(
      Dataset::from_sequence(std::make_shared<Batches>(std::vector<std::int64_t>(25, 8)))
          .shuffle({.seed = 3}));
  std::vector<std::int64_t> before;
  for (int i = 0; i < 3; ++i) {
    const Seen seen = epoch(strategy, feed);
    expect_once(seen.samples, 200);
    EXPECT_NE(seen.samples, before) << "each epoch has its own order";
    before = seen.samples;
  }
}

/// Behaves differently at index 3.
class Odd : public Batches {
 public:
  explicit Odd(std::function<Sample()> third)
      : Batches(std::vector<std::int64_t>(6, 2)), third_(std::move(third)) {}
  Sample get(std::uint64_t index) override { return index == 3 ? third_() : Batches::get(index); }

 private:
  std::function<Sample()> third_;
};

TEST(Scenario, d_getitem_raises) {
  Loader loader(Dataset::from_sequence(std::make_shared<Odd>([]() -> Sample {
                  throw std::system_error(std::make_error_code(std::errc::io_error), "item");
                })),
                {.threads = 2});
  for (int step = 0; step < 3; ++step) EXPECT_EQ(loader.next()->rows(), 2U);
  try {
    loader.next();
    FAIL() << "item 3 was delivered";
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("get(3)"), HasSubstr("step 3")));
    EXPECT_THROW(std::rethrow_exception(error.cause()), std::system_error);
  }
}

TEST(Scenario, d_ragged_last) {
  const std::vector<std::int64_t> sizes{4, 4, 4, 1};
  for (const std::size_t replicas : {2U, 3U, 4U})
    EXPECT_NEAR(one_epoch(sizes, replicas).mean_of_means, one_epoch(sizes, 1).mean_of_means, 1e-12);
}

TEST(Scenario, d_other_width) {
  Loader loader(Dataset::from_sequence(std::make_shared<Odd>([] {
                  return Sample::dict(
                      {{"x", Tensor::of(std::span<const std::int64_t>(std::vector<std::int64_t>(6)),
                                        {2, 3})}});
                })),
                {.threads = 2});
  try {
    while (loader.next()) {
    }
    FAIL() << "item 3 was delivered";
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("get(3)"), HasSubstr("i64[3]"), HasSubstr("i64[]")));
  }
}

/// A get blocks here until it is released.
struct Gate {
  void wait() {
    Lock lock(mutex);
    entered = true;
    changed.notify_all();
    while (!open) changed.wait(mutex);
  }
  void let_go() {
    Lock lock(mutex);
    open = true;
    changed.notify_all();
  }
  /// Advances the clock while a thread waits, until it is released. Releases it after two days by
  /// that clock, so that a wait that is not reported fails the test instead of hanging it.
  void move(VirtualClock& clock) {
    constexpr int kSecondsMax = 200'000;
    for (int second = 0; second < kSecondsMax; ++second) {
      {
        Lock lock(mutex);
        while (!entered) changed.wait(mutex);
        if (open) return;
      }
      clock.advance(std::chrono::seconds(1));
      Clock::real().pause(std::chrono::microseconds(50));
    }
    let_go();
  }
  Mutex mutex;
  Condition changed;
  bool entered = false;
  bool open = false;
};

TEST(Scenario, d_blocked) {
  // Both outlive the abandoned thread.
  static VirtualClock clock;
  const auto gate = std::make_shared<Gate>();
  LoaderOptions options;
  options.threads = 2;
  options.clock = &clock;
  options.stall_is_error = true;
  options.stall_after = std::chrono::seconds(30);
  Loader loader(Dataset::from_sequence(std::make_shared<Odd>([gate]() -> Sample {
                  gate->wait();
                  return Sample::dict({{"x", Tensor::of(std::vector<std::int64_t>(2))}});
                })),
                options);
  Thread time("time", [gate] { gate->move(clock); });
  try {
    while (loader.next()) {
    }
    ADD_FAILURE() << "a blocked get was not reported";
  } catch (const ResourceError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("get(3)"), HasSubstr("step 3")));
  }
  gate->let_go();
  while (Pool::abandoned() > 0) Clock::real().pause(std::chrono::microseconds(50));
}

}  // namespace
}  // namespace penstock::scenario
