// The programs of article 004: loops, maps, prefetch, threads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>

#include "base/pool.h"
#include "base/thread.h"
#include "tests/scenarios/article.h"

namespace penstock::scenario {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

/// Yields until `condition` holds; returns false if it never does.
template <typename Condition>
bool comes_true(Condition condition) {
  for (int i = 0; i < 1'000'000; ++i) {
    if (condition()) return true;
    yield_thread();
  }
  return condition();
}

TEST(Scenario, a004_iterator_per_step) {
  const Told told;
  Loader loader(Dataset::range(40).batch(4), {.threads = 0});
  for (int step = 0; step < 15; ++step) {
    EXPECT_THAT(loader.iterate().next()->values<std::int64_t>(), ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(told.texts.size(), step < 2 ? 0U : 1U) << "step " << step;
  }
  EXPECT_THAT(told.texts,
              ElementsAre(AllOf(HasSubstr("three iterators in a row returned one batch"),
                                HasSubstr("keep one iterator"))));
  // The same with a strategy.
  MirroredStrategy strategy(devices(2));
  Feed feed = strategy.distribute(Dataset::range(40).batch(4));
  for (int step = 0; step < 15; ++step) {
    for (const Step& first : feed) {
      EXPECT_EQ(ids_of(first), numbers(0, 4));
      break;
    }
    EXPECT_EQ(told.texts.size(), step < 3 ? 1U : 2U) << "reported when the fourth loop starts";
  }
  ASSERT_EQ(told.texts.size(), 2U);
  EXPECT_EQ(told.texts.front(), told.texts.back());
  // The remedy of the warning.
  Iterator kept = loader.iterate();
  std::vector<std::int64_t> ids;
  while (auto batch = kept.next())
    for (const std::int64_t id : ids_of(*batch)) ids.push_back(id);
  EXPECT_EQ(ids, numbers(0, 40));
}

TEST(Scenario, a004_map_arity) {
  const Dataset pairs = Dataset::zip({Dataset::range(4), Dataset::range(4)});
  EXPECT_THAT(
      [&] { (void)pairs.map([](std::int64_t x) { return x; }, {.name = "normalize"}); },
      ThrowsMessage<ConfigError>(AllOf(
          HasSubstr("map \"normalize\""), HasSubstr("the function (i64) -> (i64) takes 1"),
          HasSubstr("the elements are (i64[], i64[])"), HasSubstr("one parameter per field"))));
  const auto sum = [](std::int64_t x, std::int64_t y) { return x + y; };
  Loader loader(pairs.map(sum, {.name = "normalize"}).batch(4));
  EXPECT_THAT(loader.next()->values<std::int64_t>(), ElementsAre(0, 2, 4, 6));
}

TEST(Scenario, a004_slow_map) {
  // Slow enough that another sample can start before the first one is done.
  Pool::set_shared_threads(2);  // also on a machine with one core
  std::atomic<int> calls = 0;
  std::atomic<int> inside = 0;
  std::atomic<int> inside_max = 0;
  const Dataset dataset = Dataset::range(100)
                              .map([&](std::int64_t x) {
                                const int now = ++inside;
                                if (now > inside_max) inside_max = now;
                                if (calls++ == 0) (void)comes_true([&] { return inside_max > 1; });
                                --inside;
                                return x;
                              })
                              .batch(4);
  Loader loader(dataset);
  std::vector<std::int64_t> ids;
  for (const Batch& batch : loader)
    for (const std::int64_t id : ids_of(batch)) ids.push_back(id);
  EXPECT_EQ(ids, numbers(0, 100));
  EXPECT_EQ(calls, 100) << "once for every sample";
  EXPECT_GT(inside_max, 1) << "one after the other";
  Pool::set_shared_threads(0);
}

TEST(Scenario, a004_prefetch) {
  for (const std::uint64_t steps : {0U, 2U}) {
    std::atomic<std::int64_t> last = 0;
    Dataset dataset = Dataset::range(64)
                          .map([&](std::int64_t x) {
                            last = std::max(x, last.load());
                            return x;
                          })
                          .batch(4);
    if (steps > 0) dataset = dataset.prefetch({.steps = steps});
    Loader loader(dataset);
    // While this thread is busy with the first batch the next ones are computed.
    ASSERT_TRUE(loader.next());
    EXPECT_TRUE(comes_true([&] { return last >= 8; })) << "requested " << steps;
    EXPECT_THAT(loader.decisions(), Not(IsEmpty())) << "the reasons for the look-ahead are listed";
  }
}

std::size_t threads_of_process() {
  using std::filesystem::directory_iterator;
  const directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(Scenario, a004_threads) {
  const std::size_t before = threads_of_process();
  std::vector<Loader> pipelines;
  for (const std::optional<unsigned> threads : {std::optional(1U), {4U}, {16U}, {}})
    for (int i = 0; i < 4; ++i)
      pipelines.emplace_back(Dataset::range(1000).batch(10), LoaderOptions{.threads = threads});
  for (Loader& loader : pipelines) ASSERT_TRUE(loader.next());
  EXPECT_LE(threads_of_process(), before + usable_cores());
  for (Loader& loader : pipelines) {
    std::size_t steps = 1;
    while (loader.next()) ++steps;
    EXPECT_EQ(steps, 100U);
  }
}

}  // namespace
}  // namespace penstock::scenario
