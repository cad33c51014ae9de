#pragma once
// Failed rows, for policies that skip them.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <new>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/mutex.h"
#include "penstock/block.h"
#include "penstock/clock.h"
#include "penstock/result.h"
#include "plan/stage.h"
#include "trace/blocked.h"

namespace penstock {

/// Failures of one step. Thread-safe.
class RowFailures {
 public:
  /// `flag` is the row's flag in Identity::failed; its address identifies the row however the block
  /// was split. Null if the failure belongs to no row.
  void add(Failure failure, const std::uint8_t* flag) {
    Lock lock(mutex_);
    failures_.emplace_back(std::move(failure), flag);
  }
  [[nodiscard]] std::vector<Failure> take() {
    std::vector<Failure> taken;
    for (auto& [failure, flag] : take_all()) taken.push_back(std::move(failure));
    return taken;
  }
  /// Returns the failures, with `row` counted from `flags`.
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

/// Runs `body(first, rows)`; running out of memory becomes a failure of one of its rows.
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

/// Adds the file size to the message of a sample that ran out of memory.
inline void add_file_size(Failure& failure) {
  std::error_code unknown;
  const std::uint64_t bytes = std::filesystem::file_size(failure.where.file, unknown);
  if (!unknown) failure.message += fmt::format(" (its file has {} bytes)", bytes);
}

/// How many of the first rows are good.
inline std::size_t good_rows_in(std::span<const std::uint8_t> flags) {
  return static_cast<std::size_t>(
      std::ranges::find_if(flags, [](std::uint8_t flag) { return flag != kRowGood; }) -
      flags.begin());
}

/// Calls `body(first, rows)` for the rows of `out` that have not failed, in as few runs as
/// possible. A transient failure is retried up to three times and then returned; running out of
/// memory then becomes the sample's failure. Any other failure marks its row, and the remaining
/// rows are computed; without a collector the failure is returned. (Flags without a collector are
/// for masked rows.)
template <typename Body>
Result<void> for_good_rows(const BlockView& out, const IdSpace& ids, Body body) {
  constexpr int kTriesMax = 3;
  std::uint8_t* const failed = out.identity.failed;
  std::size_t row = 0;
  std::size_t run_max = out.rows;  // 1 if the function cannot tell which row failed
  int tries = 0;
  while (row < out.rows) {
    if (failed != nullptr && failed[row] != 0) {
      ++row;
      continue;
    }
    std::size_t end = std::min(out.rows, row + run_max);
    if (failed != nullptr) end = row + good_rows_in({failed + row, end - row});
    Result<void> done = within_memory(body, row, end - row);
    if (done) {
      row = end;
      tries = 0;
      continue;
    }
    Failure& failure = done.failure();
    if (failure.row > 0) tries = 0;  // not the row that was retried
    const bool row_known = failure.row_known || end - row == 1;
    const bool no_memory = failure.kind == Failure::Kind::no_memory;
    if ((failure.transient() || (no_memory && row_known)) && ++tries <= kTriesMax) {
      row += failure.row;  // the rows before it are done
      const Nanoseconds pause = std::chrono::milliseconds(1 << (2 * tries));
      trace::note_retry(std::move(failure.message), pause);
      Clock::real().pause(pause);
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
