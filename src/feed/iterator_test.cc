// Datasets of unusual size or shape.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/thread.h"
#include "penstock/penstock.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Numbers = std::vector<std::int64_t>;

Numbers values_of(Loader& loader) {
  Numbers values;
  while (auto batch = loader.next())
    for (const std::int64_t value : (*batch)[""].values<std::int64_t>()) values.push_back(value);
  return values;
}

Numbers values_of(const Dataset& dataset, unsigned threads = 2) {
  Loader loader(dataset, {.threads = threads});
  return values_of(loader);
}

TEST(IteratorTest, ABatchLargerThanTheDataUsesTheMemoryOfTheData) {
  const Dataset few = Dataset::range(4);
  for (const std::int64_t size : {1'000'000'000LL, 10'000'000'000LL}) {
    EXPECT_THAT(values_of(few.batch(size)), ElementsAre(0, 1, 2, 3));
    EXPECT_LT(Plan(few.batch(size)).batch_bytes().value(), 10'000U);
    EXPECT_THAT(values_of(few.filter([](std::int64_t x) { return x > 1; }).batch(size)),
                ElementsAre(2, 3));
    EXPECT_THAT(values_of(few.repeat(2).batch(size)), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  }
}

TEST(IteratorTest, AStepOfAStreamMayExceedTheReservedMemory) {
  constexpr std::int64_t kRows = 200'000;
  const Dataset all = Dataset::range(kRows).filter([](std::int64_t) { return true; });
  Loader loader(all.repeat(2).batch(kRows + 10), {.threads = 2});
  EXPECT_EQ(loader.next()->rows(), static_cast<std::size_t>(kRows + 10));
  EXPECT_EQ(loader.next()->rows(), static_cast<std::size_t>(kRows - 10));
  EXPECT_FALSE(loader.next());
}

TEST(IteratorTest, EveryRoundOfThreeEndlessRepeatsHasItsOwnOrder) {
  const Dataset nested =
      Dataset::range(16).shuffle({.seed = 3}).repeat().take(16).repeat().take(16).repeat();
  const Numbers values = values_of(nested.take(16 * 20).batch(16));
  std::set<Numbers> orders;
  for (std::size_t round = 0; round < 20; ++round)
    orders.insert({values.begin() + static_cast<std::ptrdiff_t>(16 * round),
                   values.begin() + static_cast<std::ptrdiff_t>(16 * (round + 1))});
  EXPECT_EQ(orders.size(), 20U);
}

TEST(IteratorTest, ACachedRowIsComputedOnceHoweverManyRoundsAreInFlight) {
  for (int trial = 0; trial < 20; ++trial) {
    const auto calls = std::make_shared<std::atomic<int>>(0);
    const Dataset cached = Dataset::range(10)
                               .map([calls](std::int64_t x) {
                                 ++*calls;
                                 for (int i = 0; i < 100; ++i) yield_thread();
                                 return x;
                               })
                               .cache();
    EXPECT_EQ(values_of(cached.repeat(3).batch(4), 4).size(), 30U);
    EXPECT_EQ(*calls, 10);
    EXPECT_EQ(values_of(cached.repeat(2).batch(3), 0).size(), 20U);
    EXPECT_EQ(*calls, 10);
  }
}

TEST(IteratorTest, ARepeatOfAnEmptyStreamEnds) {
  const Dataset none = Dataset::range(3).filter([](std::int64_t) { return false; });
  EXPECT_TRUE(values_of(none.repeat(1'000'000'000'000).batch(2)).empty());
  EXPECT_TRUE(values_of(none.batch(2).repeat(1'000'000'000'000)).empty());
}

TEST(IteratorTest, DatasetsOfElementsMaySelectAndSplit) {
  const auto odd = [](std::int64_t x) { return x % 2 == 1; };
  const Dataset selected =
      Dataset::range(3).flat_map([odd](std::int64_t) { return Dataset::range(5).select(odd); });
  EXPECT_THAT(values_of(selected.batch(4)), ElementsAre(1, 3, 1, 3, 1, 3));
  const Dataset split =
      Dataset::range(2).flat_map([](std::int64_t) { return Dataset::range(8).split(0.25).first; });
  EXPECT_EQ(values_of(split.batch(4)).size(), 4U);
}

TEST(IteratorTest, ARandomSeedInADatasetOfAnElementIsAnErrorUnlessOneIsDrawn) {
  const auto inner = [](std::int64_t) {
    return Dataset::range(8).shuffle({.seed = Seed::random()});
  };
  try {
    values_of(Dataset::range(2).flat_map(inner).batch(4));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("shuffle with a random seed"));
  }
  const Dataset drawn = Dataset::range(2).shuffle({.seed = Seed::random()}).flat_map(inner);
  EXPECT_EQ(values_of(drawn.batch(4)).size(), 16U);
}

TEST(IteratorTest, EndlessAndUnknownIsEndless) {
  const Dataset unknown = Dataset::range(3).filter([](std::int64_t) { return true; });
  const Dataset endless = Dataset::range(3).repeat();
  EXPECT_TRUE(unknown.concatenate(endless).cardinality().is_endless());
  EXPECT_TRUE(endless.concatenate(unknown).cardinality().is_endless());
  EXPECT_TRUE(unknown.concatenate(unknown).cardinality().is_unknown());
  const auto pair = [](std::int64_t) { return Dataset::range(2); };
  EXPECT_TRUE(endless.interleave(pair).cardinality().is_endless());
  EXPECT_EQ(values_of(unknown.concatenate(endless).take(5).batch(5)), (Numbers{0, 1, 2, 0, 1}));
}

}  // namespace
}  // namespace penstock
