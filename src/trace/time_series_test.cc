#include "trace/time_series.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/thread.h"

namespace penstock::trace {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;

std::uint64_t rows_of(const TimeSeries::Copy& copy) {
  return std::accumulate(
      copy.intervals.begin(), copy.intervals.end(), std::uint64_t{0},
      [](std::uint64_t sum, const Interval& interval) { return sum + interval.rows; });
}

TEST(SeriesTest, TotalsAddUpAndTheOthersKeepTheLargest) {
  TimeSeries series;
  series.add(3 * kMillisecond, {.rows = 2, .waited = 5, .bytes = 100, .window = 3});
  series.add(9 * kMillisecond, {.rows = 3, .waited = 1, .bytes = 40, .window = 4});
  series.add(25 * kMillisecond, {.rows = 7});
  const auto copy = series.copy();
  ASSERT_EQ(copy.intervals.size(), 3U);
  EXPECT_EQ(copy.width, 10 * kMillisecond);
  EXPECT_EQ(copy.intervals[0].rows, 5U);
  EXPECT_EQ(copy.intervals[0].waited, 6U);
  EXPECT_EQ(copy.intervals[0].bytes, 100U);
  EXPECT_EQ(copy.intervals[0].window, 4U);
  EXPECT_EQ(copy.intervals[1].rows, 0U);
  EXPECT_EQ(copy.intervals[2].rows, 7U);
}

TEST(SeriesTest, IntervalsGrowInsteadOfTheirNumber) {
  TimeSeries series;
  for (std::uint64_t second = 0; second < 100'000; ++second)
    series.add(second * 1000 * kMillisecond, {.rows = 1, .bytes = second});
  const auto copy = series.copy();
  EXPECT_LE(copy.intervals.size(), TimeSeries::kIntervals);
  EXPECT_GT(copy.intervals.size(), TimeSeries::kIntervals / 2);
  EXPECT_EQ(rows_of(copy), 100'000U);
  EXPECT_EQ(copy.intervals.back().bytes, 99'999U);
}

TEST(SeriesTest, ACopyDuringAdditionsIsOfOneMoment) {
  TimeSeries series;
  Thread writer("writer", [&] {
    for (std::uint64_t i = 0; i < 20'000; ++i)
      series.add(i * kMillisecond, {.rows = 1, .waited = 1, .worked = 1});
  });
  for (int i = 0; i < 200; ++i) {
    const auto copy = series.copy();
    for (const Interval& interval : copy.intervals) {
      EXPECT_EQ(interval.rows, interval.waited);
      EXPECT_EQ(interval.rows, interval.worked);
    }
  }
  writer.join();
  EXPECT_EQ(rows_of(series.copy()), 20'000U);
}

}  // namespace
}  // namespace penstock::trace
