#pragma once
// What happened when: totals by interval of time. The number of intervals is bounded; when they are
// used up, neighbors are added together and the intervals become twice as long.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::trace {

/// One interval. The first four are totals, the others the largest values seen.
struct Interval {
  std::uint64_t rows = 0;
  std::uint64_t waited = 0;     // nanoseconds, by the consumer
  std::uint64_t worked = 0;     // nanoseconds, by all threads of the run
  std::uint64_t others = 0;     // nanoseconds, by the threads of other runs of the process
  std::uint64_t bytes = 0;      // of the byte budget, in use
  std::uint64_t in_flight = 0;  // steps
  std::uint64_t window = 0;     // steps
};

/// One thread adds; any thread may copy.
class TimeSeries {
 public:
  static constexpr std::size_t kIntervals = 256;

  /// Adds to the interval that contains `at`, nanoseconds since the start.
  void add(std::uint64_t at, const Interval& what);

  struct Copy {
    std::uint64_t width = 0;  // nanoseconds
    std::vector<Interval> intervals;
  };
  [[nodiscard]] Copy copy() const;

 private:
  static constexpr std::size_t kValues = 7;
  static constexpr std::size_t kTotals = 4;
  using Words = std::array<std::atomic<std::uint64_t>, kValues>;
  static void merge(Words& into, const std::array<std::uint64_t, kValues>& what);
  void halve();

  std::atomic<std::uint64_t> version_{0};  // odd while it is written
  std::atomic<std::uint64_t> width_{10'000'000};
  std::atomic<std::uint64_t> used_{0};
  std::array<Words, kIntervals> words_{};
};

}  // namespace penstock::trace
