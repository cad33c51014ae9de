#include "trace/time_series.h"

#include <algorithm>

namespace penstock::trace {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

void TimeSeries::merge(Words& into, const std::array<std::uint64_t, kValues>& what) {
  for (std::size_t i = 0; i < kValues; ++i) {
    const std::uint64_t before = into[i].load(kRelaxed);
    into[i].store(i < kTotals ? before + what[i] : std::max(before, what[i]), kRelaxed);
  }
}

void TimeSeries::halve() {
  for (std::size_t i = 0; i < kIntervals; ++i) {
    std::array<std::uint64_t, kValues> what{};
    for (std::size_t value = 0; value < kValues; ++value) {
      what[value] = words_[i][value].load(kRelaxed);
      words_[i][value].store(0, kRelaxed);
    }
    merge(words_[i / 2], what);
  }
  used_.store((used_.load(kRelaxed) + 1) / 2, kRelaxed);
  width_.store(2 * width_.load(kRelaxed), kRelaxed);
}

void TimeSeries::add(std::uint64_t at, const Interval& what) {
  // Sequentially consistent, so that a reader that sees one of the words also sees the odd number.
  version_.fetch_add(1);
  while (at / width_.load(kRelaxed) >= kIntervals) halve();
  const std::size_t index = at / width_.load(kRelaxed);
  used_.store(std::max<std::uint64_t>(used_.load(kRelaxed), index + 1), kRelaxed);
  merge(words_[index], {what.rows, what.waited, what.worked, what.others, what.bytes,
                        what.in_flight, what.window});
  version_.fetch_add(1);
}

TimeSeries::Copy TimeSeries::copy() const {
  constexpr int kTries = 1000;
  Copy made;
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t before = version_.load();
    made = {width_.load(), {}};
    const std::uint64_t used = used_.load();
    for (std::size_t at = 0; at < used; ++at) {
      std::array<std::uint64_t, kValues> words{};
      for (std::size_t value = 0; value < kValues; ++value) words[value] = words_[at][value].load();
      made.intervals.push_back(
          {words[0], words[1], words[2], words[3], words[4], words[5], words[6]});
    }
    if (before % 2 == 0 && version_.load() == before) break;
  }
  return made;  // after so many tries, of slightly different moments
}

}  // namespace penstock::trace
