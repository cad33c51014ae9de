#pragma once
// The work of a pool thread for a pass.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/thread_stack.h"
#include "penstock/clock.h"
#include "run/step_in_flight.h"
#include "trace/activity.h"

namespace penstock {

/// A time as the trace stores it.
inline std::uint64_t count_of(Nanoseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

/// Rows of one share, or a whole step.
struct Piece {
  StepInFlight* step = nullptr;
  std::size_t share = 0;
  std::uint64_t first = 0;
  std::uint64_t rows = 0;
  bool whole = false;
};

struct Task {
  enum class Kind : std::uint8_t { rows, pull, learn, help };
  Kind kind = Kind::rows;
  std::vector<Piece> pieces;
  std::uint64_t first_step = 0;
  std::uint64_t steps = 0;   // whose rows it contains
  std::uint64_t window = 0;  // the window when it started
  std::uint64_t first_row = 0;
  std::uint32_t first_share = 0;
  // Properties of the first piece, for reports: its step may be delivered and reused before the
  // task ends.
  std::uint32_t leaf = 0;
  std::optional<std::uint64_t> asked_index = {};  // of a Sequence
  std::uint64_t step_bytes = 0;  // of the largest step it completed, if sizes differ
  ThreadId thread = this_thread_id();
  Nanoseconds began{0};
  trace::Activity activity;

  /// True if only one thread may run it at a time.
  [[nodiscard]] bool alone() const { return kind == Kind::pull || kind == Kind::learn; }
};

}  // namespace penstock
