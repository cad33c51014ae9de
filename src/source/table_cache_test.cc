#include "source/table_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/cancelled.h"
#include "base/thread.h"
#include "source/arrow_tables_for_tests.h"

namespace penstock {
namespace {

using Effort = TableCache::Effort;
using ::testing::ElementsAre;
using testing::numbers;

constexpr std::uint64_t kChunkBytes = 800;  // 100 numbers

TableCache::TablePtr table_of_100() {
  const auto part =
      testing::table({numbers("x", "l", std::vector<std::int64_t>(kChunkBytes / 8))}, 100);
  Released<ArrowSchema> schema;
  static_cast<ArrowSchema&>(schema) = testing::schema_of(part);
  auto batches = std::make_shared<ArrowBatches>();
  ArrowArray batch = testing::array_of(part);
  batches->emplace_back(batch);
  return std::make_shared<const ArrowTable>(
      std::make_shared<const ArrowLayout>("test", schema, std::map<std::string, NullValue>()),
      std::move(batches));
}

bool always() {
  return true;
}

/// Loads are counted.
struct Loads {
  std::vector<std::uint64_t> order = {};
  std::vector<Failure> failures = {};  // of the next loads
  TableCache::Load load() {
    return [this](std::uint64_t chunk, const TableCache::Wanted&) -> Result<TableCache::TablePtr> {
      order.push_back(chunk);
      if (failures.empty()) return table_of_100();
      Failure failure = failures.front();
      failures.erase(failures.begin());
      return failure;
    };
  }
};

bool has(TableCache& cache, std::uint64_t chunk) {
  return *cache.get(chunk, Effort::look, always) != nullptr;
}
void use(TableCache& cache, std::uint64_t chunk) {
  ASSERT_NE(*cache.get(chunk, Effort::wait, always), nullptr);
}

TEST(TableCacheTest, TheChunkUsedLongestAgoIsDropped) {
  Loads loads;
  TableCache cache(2 * kChunkBytes, loads.load());
  for (const std::uint64_t chunk : {1U, 2U, 1U, 3U}) use(cache, chunk);
  EXPECT_TRUE(has(cache, 1) && has(cache, 3));
  EXPECT_FALSE(has(cache, 2));
  EXPECT_EQ(cache.bytes(), 2 * kChunkBytes);
  EXPECT_THAT(loads.order, ElementsAre(1, 2, 3));
}

TEST(TableCacheTest, AChunkInUseIsKeptAndSoIsOneForEachUser) {
  Loads loads;
  TableCache cache(1, loads.load());
  {
    const auto in_use = cache.get(1, Effort::wait, always);
    use(cache, 2);
    EXPECT_TRUE(has(cache, 1) && has(cache, 2));
    use(cache, 3);
    EXPECT_TRUE(has(cache, 1) && has(cache, 3));
    EXPECT_FALSE(has(cache, 2));
  }
  use(cache, 4);
  EXPECT_EQ(cache.bytes(), kChunkBytes);
  {
    const TableCache::User one(cache);
    const TableCache::User other(cache);
  }
  use(cache, 5);
  EXPECT_TRUE(has(cache, 4) && has(cache, 5));
  use(cache, 6);
  EXPECT_EQ(cache.bytes(), 2 * kChunkBytes);
}

TEST(TableCacheTest, AFailureIsRepeatedUntilItsSecondFourthAndEighthRequest) {
  Loads loads;
  loads.failures = {{"first"}, {"second"}, {"third"}};
  TableCache cache(kChunkBytes, loads.load());
  std::vector<std::size_t> loads_after;
  for (int request = 1; request <= 8; ++request) {
    const auto got = cache.get(7, Effort::wait, always);
    EXPECT_EQ(got.ok(), request == 8);
    loads_after.push_back(loads.order.size());
  }
  EXPECT_THAT(loads_after, ElementsAre(1, 2, 2, 3, 3, 3, 3, 4));
}

TEST(TableCacheTest, AFailureThatMayPassAndACancellationAreNotRepeated) {
  Loads loads;
  Failure passing{"again"};
  passing.kind = Failure::Kind::transient;
  loads.failures = {passing, passing, cancelled(0), passing};
  TableCache cache(kChunkBytes, loads.load());
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(cache.get(7, Effort::wait, always).ok());
  use(cache, 7);
  EXPECT_EQ(loads.order.size(), 5U);
}

TEST(TableCacheTest, WhatAnotherThreadLoadsIsLoadedOnce) {
  std::atomic<bool> loading{false};
  std::atomic<bool> release{false};
  std::atomic<int> loads{0};
  TableCache cache(kChunkBytes, [&](std::uint64_t, const TableCache::Wanted&) {
    ++loads;
    loading = true;
    loading.notify_all();
    release.wait(false);
    return Result(table_of_100());
  });
  Thread loads_it("loads", [&] { use(cache, 0); });
  loading.wait(false);
  EXPECT_EQ(*cache.get(0, Effort::look, always), nullptr);
  EXPECT_EQ(*cache.get(0, Effort::load, always), nullptr) << "it does not wait";
  int looks = 0;
  const auto stopped = cache.get(0, Effort::wait, [&] { return ++looks < 3; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_TRUE(stopped.failure().cancelled());
  Thread waits("waits", [&] { use(cache, 0); });
  release = true;
  release.notify_all();
  loads_it.join();
  waits.join();
  EXPECT_EQ(loads, 1);
}

TEST(TableCacheTest, AfterACancelledLoadAnotherThreadLoads) {
  std::atomic<bool> loading{false};
  std::atomic<bool> release{false};
  std::atomic<int> loads{0};
  TableCache cache(kChunkBytes,
                   [&](std::uint64_t, const TableCache::Wanted&) -> Result<TableCache::TablePtr> {
                     if (++loads > 1) return table_of_100();
                     loading = true;
                     loading.notify_all();
                     release.wait(false);
                     return cancelled(0);
                   });
  Thread is_stopped("stopped", [&] { EXPECT_FALSE(cache.get(0, Effort::wait, always).ok()); });
  loading.wait(false);
  Thread waits("waits", [&] { use(cache, 0); });
  release = true;
  release.notify_all();
  is_stopped.join();
  waits.join();
  EXPECT_EQ(loads, 2);
}

}  // namespace
}  // namespace penstock
