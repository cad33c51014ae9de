// next_if_ready: the same batches in the same order, without waiting.
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "penstock/penstock.h"

namespace penstock {
namespace {

std::vector<std::int64_t> numbers(const Batch& batch) {
  const auto values = batch.values<std::int64_t>();
  return {values.begin(), values.end()};
}

TEST(NextIfReadyTest, NextIfReadyReturnsTheSameBatchesAsNext) {
  const Dataset data = Dataset::range(1000).shuffle({.seed = 3}).batch(7);
  std::vector<std::vector<std::int64_t>> wanted;
  Loader plain(data);
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const Batch& batch : plain) wanted.push_back(numbers(batch));
  for (const unsigned threads : {0U, 1U, 3U}) {
    Loader loader(data, {.threads = threads});
    Iterator steps = loader.iterate();
    std::vector<std::vector<std::int64_t>> found;
    while (found.size() < wanted.size()) {
      auto batch = steps.next_if_ready();
      if (!batch) batch = steps.next();
      if (batch) found.push_back(numbers(*batch));
    }
    EXPECT_EQ(found, wanted) << threads;
    EXPECT_FALSE(steps.next_if_ready().has_value()) << "an epoch is over";
  }
}

TEST(NextIfReadyTest, TheStateCountsTheReceivedBatches) {
  const Dataset data = Dataset::range(400).batch(4);
  Loader loader(data, {.threads = 2});
  Iterator steps = loader.iterate();
  std::size_t taken = 0;
  while (taken < 60)
    if (steps.next_if_ready() || steps.next()) ++taken;
  Loader other(data);
  Iterator resumed = other.iterate();
  resumed.restore(steps.state());
  EXPECT_EQ(numbers(*resumed.next()), (std::vector<std::int64_t>{240, 241, 242, 243}));
}

TEST(NextIfReadyTest, AFailureIsThrownByNext) {
  const Dataset data = Dataset::range(64)
                           .map([](std::int64_t x) {
                             if (x == 37) throw std::runtime_error("no");
                             return x;
                           })
                           .batch(4);
  Loader loader(data, {.threads = 2});
  Iterator steps = loader.iterate();
  std::uint64_t good = 0;
  EXPECT_THROW(
      {
        while (true)
          if (steps.next_if_ready() || steps.next()) ++good;
      },
      SampleError);
  EXPECT_EQ(good, 9U);
}

}  // namespace
}  // namespace penstock
