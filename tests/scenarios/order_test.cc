// Order, cache and shards.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/temp_folder_for_tests.h"
#include "tests/scenarios/article.h"

namespace penstock::scenario {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Ne;

/// Sample numbers of the rest of the loader's epoch.
std::vector<std::int64_t> ids_of_epoch(Loader& loader) {
  std::vector<std::int64_t> ids;
  while (auto batch = loader.next())
    for (const std::int64_t id : ids_of(*batch)) ids.push_back(id);
  return ids;
}

TEST(Scenario, c_shuffle_then_shard) {
  // Each worker builds its dataset separately, without a seed.
  const auto indexed = [] { return Dataset::range(64).shuffle(); };
  const auto streamed = [] { return generator_of(64).shuffle({.window = 16}); };
  for (const std::int64_t workers : {2, 4})
    for (const std::function<Dataset()>& build : {std::function<Dataset()>(indexed), {streamed}}) {
      std::vector<Loader> loaders;
      for (std::int64_t worker = 0; worker < workers; ++worker)
        loaders.emplace_back(build().shard(workers, worker).batch(4));
      std::vector<std::int64_t> before;
      for (int epoch = 0; epoch < 3; ++epoch) {
        std::vector<std::int64_t> ids;
        for (Loader& loader : loaders)
          for (const std::int64_t id : ids_of_epoch(loader)) ids.push_back(id);
        EXPECT_EQ(sorted(ids), numbers(0, 64)) << "none missing, none twice";
        EXPECT_THAT(ids, Ne(before)) << "another order each epoch";
        before = ids;
      }
    }
}

/// Numbers that count how often they are computed.
Dataset counted(std::int64_t count, std::atomic<int>& made) {
  return Dataset::range(count).map(
      [&made](std::int64_t x) {
        ++made;
        return x;
      },
      {.name = "decode"});
}

/// The same data in a folder, as another run or process defines it.
Dataset cached_in(const TempFolder& folder, std::int64_t count, std::atomic<int>& made) {
  CacheOptions options;
  options.folder = folder.path("cache");
  return counted(count, made).cache(options);
}

TEST(Scenario, c_cache_partial) {
  const Told told;
  std::atomic<int> made = 0;
  Loader loader(counted(20, made).cache().take(8).batch(4));
  for (int pass = 0; pass < 3; ++pass) EXPECT_EQ(ids_of_epoch(loader), numbers(0, 8));
  EXPECT_EQ(made, 8) << "computed rows are cached";
  EXPECT_TRUE(told.texts.empty());
  // Another reader that needs more computes the rest.
  std::atomic<int> again = 0;
  const Dataset cached = counted(20, again).cache();
  Loader some(cached.take(8).batch(4));
  EXPECT_EQ(ids_of_epoch(some), numbers(0, 8));
  Loader all(cached.batch(4));
  EXPECT_EQ(ids_of_epoch(all), numbers(0, 20));
  EXPECT_EQ(again, 20);
  // In a folder, also another run.
  const TempFolder folder;
  std::atomic<int> stored = 0;
  Loader run(cached_in(folder, 20, stored).take(8).batch(4));
  for (int pass = 0; pass < 3; ++pass) EXPECT_EQ(ids_of_epoch(run), numbers(0, 8));
  EXPECT_EQ(stored, 8);
  Loader next_run(cached_in(folder, 20, stored).batch(4));
  EXPECT_EQ(ids_of_epoch(next_run), numbers(0, 20));
  EXPECT_EQ(stored, 20);
}

TEST(Scenario, c_cache_two_readers) {
  std::atomic<int> made = 0;
  const Dataset cached = counted(20, made).cache();
  Loader first(cached.batch(4), {.threads = 0});
  Loader second(cached.batch(4), {.threads = 0});
  for (int step = 0; step < 5; ++step)
    EXPECT_EQ(ids_of(*first.next()), ids_of(*second.next())) << "step " << step;
  EXPECT_EQ(made, 20);
  // Readers of another order, and with threads, find the same rows.
  Loader shuffled(cached.shuffle({.seed = 1}).batch(3));
  EXPECT_EQ(sorted(ids_of_epoch(shuffled)), numbers(0, 20));
  EXPECT_EQ(made, 20);
  // Two readers of one folder, defined separately.
  const TempFolder folder;
  std::atomic<int> stored = 0;
  Loader one(cached_in(folder, 20, stored).batch(4), {.threads = 0});
  Loader other(cached_in(folder, 20, stored).batch(4), {.threads = 0});
  for (int step = 0; step < 5; ++step)
    EXPECT_EQ(ids_of(*one.next()), ids_of(*other.next())) << "step " << step;
  EXPECT_EQ(stored, 20);
}

TEST(Scenario, c_random_cache) {
  const auto augment = [](std::int64_t x, Rng& rng) {
    return 1000 * x + static_cast<std::int64_t>(rng.integer(1000));
  };
  const Told told;
  Loader frozen(Dataset::range(20).map(augment, {.name = "augment"}).cache().batch(20));
  EXPECT_THAT(told.texts,
              ElementsAre(AllOf(HasSubstr("augment"), HasSubstr("put cache() before it"))));
  EXPECT_THAT(frozen.plan().explain(), HasSubstr("warning: cache"));
  const auto first = ids_of_epoch(frozen);
  EXPECT_EQ(ids_of_epoch(frozen), first) << "as the warning says";
  // The remedy of the warning.
  Loader fresh(Dataset::range(20).cache().map(augment, {.name = "augment"}).batch(20));
  const auto other = ids_of_epoch(fresh);
  EXPECT_NE(ids_of_epoch(fresh), other);
  EXPECT_EQ(told.texts.size(), 1U);
  // Or the cache finds that place by itself.
  std::atomic<int> made = 0;
  CacheOptions automatic;
  automatic.place = CachePlace::automatic;
  Loader moved(counted(20, made).map(augment, {.name = "augment"}).cache(automatic).batch(20));
  const auto before = ids_of_epoch(moved);
  EXPECT_NE(ids_of_epoch(moved), before);
  EXPECT_EQ(made, 20);
  EXPECT_EQ(told.texts.size(), 1U);
}

}  // namespace
}  // namespace penstock::scenario
