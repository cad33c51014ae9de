#pragma once
// Counts of durations in buckets whose bounds grow by a quarter of an octave: percentiles are exact
// within 10 %.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::trace {

inline constexpr std::size_t kBuckets = 4 * 42;  // up to 2^42 ns: 73 minutes

/// The bucket of a duration in nanoseconds.
inline std::size_t bucket_of(std::uint64_t nanoseconds) {
  if (nanoseconds < 4) return static_cast<std::size_t>(nanoseconds);
  const auto octave = static_cast<std::size_t>(std::bit_width(nanoseconds)) - 1;
  const std::size_t quarter = (nanoseconds >> (octave - 2)) & 3;
  return std::min(4 * (octave - 1) + quarter, kBuckets - 1);
}

/// The middle of a bucket, in nanoseconds.
inline double middle_of_bucket(std::size_t bucket) {
  if (bucket < 4) return static_cast<double>(bucket);
  const std::size_t octave = bucket / 4 + 1;
  const double quarter = static_cast<double>(std::uint64_t{1} << (octave - 2));
  return quarter * (4.5 + static_cast<double>(bucket % 4));
}

/// The duration in nanoseconds that `part` (0 to 1) of the counted ones do not exceed; 0 of none.
double percentile(const std::vector<std::uint64_t>& counts, double part);

/// Thread-safe.
class Histogram {
 public:
  void add(std::uint64_t nanoseconds, std::uint64_t times) {
    counts_[bucket_of(nanoseconds)].fetch_add(times, std::memory_order_relaxed);
  }
  [[nodiscard]] std::vector<std::uint64_t> counts() const {
    std::vector<std::uint64_t> counts;
    for (const auto& count : counts_) counts.push_back(count.load(std::memory_order_relaxed));
    while (!counts.empty() && counts.back() == 0) counts.pop_back();
    return counts;
  }

 private:
  std::array<std::atomic<std::uint64_t>, kBuckets> counts_{};
};

}  // namespace penstock::trace
