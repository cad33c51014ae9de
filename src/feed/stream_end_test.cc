// The end of a stream costs nothing: no step is attempted and discarded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "penstock/penstock.h"
#include "trace/trace.h"

namespace penstock {
namespace {

/// Counts heap allocations.
class CountingAllocator final : public Allocator {
 public:
  std::byte* allocate(std::size_t bytes) override {
    ++taken;
    return Allocator::heap()->allocate(bytes);
  }
  void release(std::byte* data, std::size_t bytes) noexcept override {
    Allocator::heap()->release(data, bytes);
  }
  std::atomic<int> taken{0};
};

struct Counters {
  std::shared_ptr<std::atomic<int>> maps = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::atomic<int>> starts = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::atomic<int>> pulls = std::make_shared<std::atomic<int>>(0);
};

Dataset generated(std::int64_t count, const Counters& counters) {
  return Dataset::from_generator([count, counters] {
    ++*counters.starts;
    return [count, counters, i = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
      ++*counters.pulls;
      if (i == count) return std::nullopt;
      return i++;
    };
  });
}

/// A map that counts its calls, fails for one sample and declares no spec.
Dataset mapped(const Dataset& in, const Counters& counters) {
  return in
      .map(
          [counters](const Sample& sample) {
            ++*counters.maps;
            if (sample.tensor().item<std::int64_t>() == 9) throw std::runtime_error("torn");
            return sample;
          },
          {.name = "read"})
      .batch(4);
}

/// Everything observable of an epoch and of what follows it.
struct Seen {
  std::vector<std::string> batches;
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> states;
  std::vector<bool> ends;
  std::vector<std::tuple<std::uint64_t, int, std::uint32_t>> events;  // step, kind, rows
  std::vector<std::string> ledger;
  int maps = 0;
  int slabs = 0;  // if one thread allocates them deterministically
  bool operator==(const Seen&) const = default;
};

Seen epoch_of(const Dataset& dataset, const Counters& counters, unsigned threads) {
  const auto allocator = std::make_shared<CountingAllocator>();
  Loader loader(
      dataset,
      {.threads = threads, .on_error = OnError::skip, .skip_limit = 1000, .allocator = allocator});
  Seen seen;
  const auto look = [&] {
    const State state = loader.state();
    seen.states.emplace_back(state.epoch, state.step, state.position);
    seen.ends.push_back(loader.at_end());
  };
  look();
  const auto take = [&] {  // returns it before anything is counted
    const auto batch = loader.next();
    if (!batch) return false;
    std::string text;
    for (const std::int64_t value : batch->values<std::int64_t>())
      text += std::to_string(value) + ",";
    seen.batches.push_back(text + std::to_string(batch->loss_scale()));
    return true;
  };
  while (take()) look();
  for (const trace::Event& event : trace::events_of(loader.trace_run()))
    if (event.kind == trace::Kind::ready || event.kind == trace::Kind::delivered)
      seen.events.emplace_back(event.step, static_cast<int>(event.kind), event.rows);
  std::ranges::sort(seen.events);
  for (const LedgerEntry& entry : loader.ledger().entries())
    seen.ledger.push_back(std::to_string(entry.step) + " " + std::to_string(entry.sample.number) +
                          entry.reason);
  seen.maps = *counters.maps;
  seen.slabs = threads == 0 ? allocator->taken.load() : 0;
  EXPECT_EQ(loader.epoch(), 1U);
  return seen;
}

TEST(StreamEndTest, SevenStepsOfAStreamHaveTheTraceOfSevenIndexedSteps) {
  for (const std::int64_t count : {28, 26, 25}) {
    for (unsigned threads = 0; threads <= 2; ++threads) {
      const Counters indexed;
      const Seen expected = epoch_of(mapped(Dataset::range(count), indexed), indexed, threads);
      EXPECT_EQ(expected.batches.size(), 7U);
      EXPECT_EQ(expected.events.size(), 14U);
      EXPECT_EQ(expected.maps, count);
      EXPECT_EQ(expected.ledger.size(), 1U);
      EXPECT_EQ(expected.states.back(), std::tuple(1U, 0U, 0U));

      const Counters of_generator;
      const Seen generator =
          epoch_of(mapped(generated(count, of_generator), of_generator), of_generator, threads);
      EXPECT_EQ(generator.batches, expected.batches);
      EXPECT_EQ(generator.states, expected.states);
      EXPECT_EQ(generator.ends, expected.ends);
      EXPECT_EQ(generator.events, expected.events);
      EXPECT_EQ(generator.ledger, expected.ledger);
      EXPECT_EQ(generator.maps, expected.maps);
      EXPECT_EQ(generator.slabs, expected.slabs);
      EXPECT_EQ(*of_generator.starts, 1);
      EXPECT_EQ(*of_generator.pulls, count + 1) << "each element, and the end";

      const Counters of_filter;
      const Dataset filtered = Dataset::range(count).filter([](std::int64_t) { return true; });
      EXPECT_EQ(epoch_of(mapped(filtered, of_filter), of_filter, threads), expected);
    }
  }
}

TEST(StreamEndTest, TheEndIsKnownWithoutComputing) {
  for (unsigned threads = 0; threads <= 2; ++threads) {
    const Counters counters;
    Loader loader(mapped(generated(8, counters).skip(-1), counters), {.threads = threads});
    EXPECT_TRUE(loader.at_end());
    EXPECT_EQ(*counters.maps, 0);
    Loader two(Dataset::from_generator([] {
                 return [i = std::int64_t{0}]() mutable {
                   return i == 8 ? std::nullopt : std::optional(i++);
                 };
               })
                   .map([&counters](std::int64_t x) {
                     ++*counters.maps;
                     return x;
                   })
                   .batch(4),
               {.threads = threads});
    EXPECT_FALSE(two.at_end());
    two.next();
    EXPECT_FALSE(two.at_end());
    two.next();
    EXPECT_EQ(*counters.maps, 8);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(two.at_end());
    EXPECT_EQ(*counters.maps, 8);
  }
}

TEST(StreamEndTest, NextReturnsNothingOnceAndThenTheNextEpoch) {
  for (unsigned threads = 0; threads <= 2; ++threads) {
    const Counters counters;
    Loader loader(generated(8, counters).batch(4), {.threads = threads});
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      EXPECT_EQ(loader.next()->epoch(), epoch);
      EXPECT_EQ(loader.next()->step(), 1U);
      EXPECT_TRUE(loader.at_end());
      EXPECT_EQ(*counters.starts, static_cast<int>(epoch) + 1) << "nothing was started early";
      EXPECT_EQ(loader.next(), std::nullopt);
      EXPECT_EQ(loader.epoch(), epoch + 1);
    }
  }
}

TEST(StreamEndTest, TheStateAfterTheLastBatchIsTheNextEpochsStart) {
  for (unsigned threads = 0; threads <= 2; ++threads) {
    const Counters counters;
    const Dataset dataset = generated(8, counters).batch(4);
    Loader loader(dataset, {.threads = threads});
    loader.next();
    EXPECT_TRUE(loader.state().stream);
    loader.next();
    const State after = loader.state();
    Loader fresh(dataset, {.threads = threads});
    fresh.set_epoch(1);
    EXPECT_EQ(after, fresh.state());
    EXPECT_EQ(after.to_json(), fresh.state().to_json());
    EXPECT_EQ(loader.next(), std::nullopt);
    EXPECT_EQ(loader.state(), after);
    Loader resumed(dataset, {.threads = threads});
    resumed.restore(after);
    EXPECT_EQ(resumed.next()->epoch(), 1U);
  }
}

}  // namespace
}  // namespace penstock
