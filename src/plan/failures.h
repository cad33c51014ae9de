#pragma once
// Rows that could not be made, where policy says to go on without them.

#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "penstock/block.h"
#include "plan/stage.h"

namespace penstock {

/// Failures of one step, from any thread.
class RowFailures {
 public:
  void add(Failure failure) {
    Lock lock(mutex_);
    failures_.push_back(std::move(failure));
  }
  [[nodiscard]] std::vector<Failure> take() {
    Lock lock(mutex_);
    return std::exchange(failures_, {});
  }

 private:
  Mutex mutex_;
  std::vector<Failure> failures_ PENSTOCK_GUARDED_BY(mutex_);
};

/// Calls `body(first, rows)` for the rows of `out` that have not failed, in as few runs as
/// possible. A failure that may pass is tried again, three times at most. Any other marks its row,
/// and the rest goes on; where nobody collects failures it is returned. (Flags without a collector
/// are for rows that were masked.)
template <typename Body>
Result<void> for_good_rows(const BlockView& out, const IdSpace& ids, Body body) {
  constexpr int kTriesMax = 3;
  std::uint8_t* const failed = out.identity.failed;
  std::size_t row = 0;
  std::size_t run_max = out.rows;  // 1 where a function cannot say which row was wrong
  int tries = 0;
  while (row < out.rows) {
    if (failed != nullptr && failed[row] != 0) {
      ++row;
      continue;
    }
    std::size_t end = row;
    while (end < out.rows && end - row < run_max && (failed == nullptr || failed[end] == 0)) ++end;
    Result<void> done = body(row, end - row);
    if (done) {
      row = end;
      tries = 0;
      continue;
    }
    Failure& failure = done.failure();
    if (failure.may_pass && ++tries <= kTriesMax) {
      row += failure.row;  // what came before it is done
      Clock::real().pause(std::chrono::milliseconds(1 << (2 * tries)));
      continue;
    }
    const bool collected = failed != nullptr && out.identity.failures != nullptr;
    if (!failure.row_known && end - row > 1 && collected) {
      run_max = 1;
      continue;
    }
    tries = 0;
    failure.row += row;
    Failure named = at_sample(std::move(failure), ids, out);
    if (!collected || named.may_pass) return named;
    const std::size_t bad = named.row;
    out.identity.failures->add(std::move(named));
    failed[bad] = 1;
    row = bad + 1;
  }
  return {};
}

}  // namespace penstock
