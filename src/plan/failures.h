#pragma once
// Rows that could not be made, where policy says to go on without them.

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/mutex.h"
#include "penstock/block.h"
#include "penstock/clock.h"
#include "penstock/result.h"
#include "plan/stage.h"

namespace penstock {

/// Failures of one step, from any thread.
class RowFailures {
 public:
  /// `flag` is the row's own in Identity::failed, which says which row it is, however the block
  /// was cut; null where there is no row.
  void add(Failure failure, const std::uint8_t* flag) {
    Lock lock(mutex_);
    failures_.emplace_back(std::move(failure), flag);
  }
  [[nodiscard]] std::vector<Failure> take() {
    std::vector<Failure> taken;
    for (auto& [failure, flag] : take_all()) taken.push_back(std::move(failure));
    return taken;
  }
  /// With `row` counted from `flags` on.
  [[nodiscard]] std::vector<Failure> take_rows(const std::uint8_t* flags) {
    std::vector<Failure> taken;
    for (auto& [failure, flag] : take_all()) {
      failure.row = flag == nullptr ? 0 : static_cast<std::size_t>(flag - flags);
      taken.push_back(std::move(failure));
    }
    return taken;
  }

 private:
  using Entry = std::pair<Failure, const std::uint8_t*>;
  std::vector<Entry> take_all() {
    Lock lock(mutex_);
    return std::exchange(failures_, {});
  }

  Mutex mutex_;
  std::vector<Entry> failures_ PENSTOCK_GUARDED_BY(mutex_);
};

/// `body(first, rows)`, where a lack of memory is a failure of one of its rows.
template <typename Body>
Result<void> within_memory(Body& body, std::size_t first, std::size_t rows) {
  try {
    return body(first, rows);
  } catch (const std::bad_alloc&) {
    Failure failure = no_memory(0);
    failure.row_known = rows == 1;
    return failure;
  }
}

/// Says how large the file of a sample is for which there was not enough memory.
inline void add_file_size(Failure& failure) {
  std::error_code unknown;
  const std::uint64_t bytes = std::filesystem::file_size(failure.where.file, unknown);
  if (!unknown) failure.message += fmt::format(" (its file has {} bytes)", bytes);
}

/// Calls `body(first, rows)` for the rows of `out` that have not failed, in as few runs as
/// possible. A failure that may pass is tried again, three times at most, and then returned; for a
/// lack of memory it is the sample's then. Any other marks its row, and the rest goes on; where
/// nobody collects failures it is returned. (Flags without a collector are for rows that were
/// masked.)
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
    Result<void> done = within_memory(body, row, end - row);
    if (done) {
      row = end;
      tries = 0;
      continue;
    }
    Failure& failure = done.failure();
    if (failure.row > 0) tries = 0;  // another row than the one that was tried before
    const bool row_known = failure.row_known || end - row == 1;
    const bool no_memory = failure.kind == Failure::Kind::no_memory;
    if ((failure.transient() || (no_memory && row_known)) && ++tries <= kTriesMax) {
      row += failure.row;  // what came before it is done
      Clock::real().pause(std::chrono::milliseconds(1 << (2 * tries)));
      continue;
    }
    const bool collected = failed != nullptr && out.identity.failures != nullptr;
    if (!row_known && (collected || no_memory) && !failure.ends_pass()) {
      run_max = 1;
      continue;
    }
    tries = 0;
    failure.row += row;
    Failure named = at_sample(std::move(failure), ids, out);
    if (no_memory) add_file_size(named);
    if (!collected || named.must_raise()) return named;
    const std::size_t bad = named.row;
    out.identity.failures->add(std::move(named), failed + bad);
    failed[bad] = kRowFailed;
    row = bad + 1;
  }
  return {};
}

}  // namespace penstock
