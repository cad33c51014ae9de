#pragma once
// All samples of indexed data, computed once on the threads of the pool, before or without a
// loader.

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "plan/stage.h"

namespace penstock {

struct SearchTask {
  std::string word;  // for errors and reports: "select"
  std::uint64_t size = 0;
  /// Receives some samples, by ascending number; threads receive different ones at the same time.
  std::function<Result<void>(std::span<const std::uint64_t> numbers, const BlockView& rows)> visit;
  /// If set: samples for which it is true are left out. Thread-safe.
  std::function<bool(std::uint64_t number)> done = {};
};
/// Without samples left out, each call of `visit` has numbers from a multiple of this one on, all
/// that follow it or this many: threads that share an array of bits write different words.
inline constexpr std::uint64_t kSearchedAtOnce = 1024;

/// Visits all samples. Throws SampleError for the first one that fails, or that `visit` fails for,
/// and CancelledError if it is called inside a function of a loader that is stopped.
/// `while_waiting` is called about every 50 ms; an exception from it ends the search.
void search(StagePtr samples, SearchTask task, const std::function<void()>& while_waiting);

}  // namespace penstock
