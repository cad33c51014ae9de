// A loader inside a function of another loader: the threads it could use are waiting for it.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/pool.h"
#include "penstock/penstock.h"

namespace penstock {
namespace {

/// A pool of `threads` threads, on any machine.
class PoolOf {
 public:
  explicit PoolOf(unsigned threads) { Pool::set_shared_threads(threads); }
  ~PoolOf() { Pool::set_shared_threads(0); }
};

std::int64_t sum_of(Loader& loader) {
  std::int64_t sum = 0;
  while (const auto batch = loader.next())
    for (const std::int64_t value : (*batch)[""].values<std::int64_t>()) sum += value;
  return sum;
}

std::int64_t sum_to(std::int64_t count) {
  return count * (count - 1) / 2;
}

TEST(NestedLoaderTest, AFunctionMayReadAnotherLoaderForAnyNumberOfThreads) {
  for (const unsigned threads : {1U, 2U, 3U}) {
    const PoolOf pool(threads);
    Loader outer(
        Dataset::range(20)
            .map([](std::int64_t x) {
              Loader inner(
                  Dataset::range(10 + x).map([](std::int64_t y) { return 2 * y; }).batch(3));
              return sum_of(inner);
            })
            .batch(2));
    std::int64_t expected = 0;
    for (std::int64_t x = 0; x < 20; ++x) expected += 2 * sum_to(10 + x);
    EXPECT_EQ(sum_of(outer), expected);
  }
}

TEST(NestedLoaderTest, AFunctionMayReadALoaderThatWasStartedOutside) {
  const PoolOf pool(1);
  Loader inner(Dataset::range(1000).batch(1));
  ASSERT_TRUE(inner.next().has_value());
  Loader outer(Dataset::range(200)
                   .map([&](std::int64_t x) {
                     const auto batch = inner.next();
                     return batch ? x : std::int64_t{-1000};
                   })
                   .batch(2),
               {.threads = 1});
  EXPECT_EQ(sum_of(outer), sum_to(200));
}

TEST(NestedLoaderTest, AFunctionMaySelect) {
  for (const unsigned threads : {1U, 2U}) {
    const PoolOf pool(threads);
    Loader outer(Dataset::range(8)
                     .map([](std::int64_t x) {
                       Loader inner(Dataset::range(5000)
                                        .select([x](std::int64_t y) { return y % 8 == x; })
                                        .batch(100));
                       return sum_of(inner);
                     })
                     .batch(2));
    EXPECT_EQ(sum_of(outer), sum_to(5000));
  }
}

TEST(NestedLoaderTest, StoppingTheOuterLoaderEndsTheWaitOfTheInnerOne) {
  const PoolOf pool(1);
  struct Gate {
    std::atomic<bool> inside{false};
    std::atomic<bool> cancelled{false};
    std::atomic<std::int64_t> calls{0};
  };
  const auto gate = std::make_shared<Gate>();
  Loader outer(Dataset::range(4)
                   .map([gate](std::int64_t x) {
                     // An endless epoch.
                     Loader inner(Dataset::range(4)
                                      .map([gate](std::int64_t y) {
                                        ++gate->calls;
                                        gate->inside = true;
                                        return y;
                                      })
                                      .repeat()
                                      .batch(1));
                     try {
                       while (inner.next()) {
                       }
                     } catch (const CancelledError&) {
                       gate->cancelled = true;
                       throw;
                     }
                     return x;
                   })
                   .batch(2),
               {.while_waiting = [gate] {
                 if (gate->inside) throw CancelledError("seen enough");
               }});
  EXPECT_THROW((void)outer.next(), CancelledError);
  outer.stop();
  EXPECT_TRUE(gate->cancelled) << "the thread returned";
  EXPECT_EQ(Pool::abandoned(), 0U);
}

}  // namespace
}  // namespace penstock
