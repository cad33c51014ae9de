#include "trace/histogram.h"

#include <gtest/gtest.h>

namespace penstock::trace {
namespace {

TEST(HistogramTest, EveryDurationIsWithinATenthOfTheMiddleOfItsBucket) {
  for (double value = 4; value < 4e12; value *= 1.01) {
    const auto nanoseconds = static_cast<std::uint64_t>(value);
    const double middle = middle_of_bucket(bucket_of(nanoseconds));
    EXPECT_NEAR(middle / static_cast<double>(nanoseconds), 1, 0.125) << nanoseconds;
  }
}

TEST(HistogramTest, BucketsDoNotDecreaseAndTheLastOneTakesAllThatIsLonger) {
  std::size_t last = 0;
  for (std::uint64_t value = 0; value < 100'000; ++value) {
    const std::size_t bucket = bucket_of(value);
    EXPECT_GE(bucket, last);
    EXPECT_LE(bucket, last + 1);
    last = bucket;
  }
  EXPECT_EQ(bucket_of(UINT64_MAX), kBuckets - 1);
}

TEST(HistogramTest, PercentilesCountWhatWasAdded) {
  Histogram histogram;
  histogram.add(1000, 99);
  histogram.add(1'000'000, 1);
  const auto counts = histogram.counts();
  EXPECT_NEAR(percentile(counts, 0.5), 1000, 125);
  EXPECT_NEAR(percentile(counts, 0.99), 1000, 125);
  EXPECT_NEAR(percentile(counts, 0.995), 1e6, 125e3);
  EXPECT_EQ(percentile({}, 0.5), 0);
}

}  // namespace
}  // namespace penstock::trace
