#pragma once
// Computation inside a sequence: the values that decide which rows follow.

#include <cstdint>

#include "plan/cursor.h"
#include "plan/stage.h"

namespace penstock {

/// The rows of the stage: those from `first` on, or all of `pulled`.
struct StageRows {
  Turn turn;
  std::uint64_t first = 0;
  const BlockView* pulled = nullptr;
};

/// Fills `out`. If failures are collected, failed rows are removed; returns how many remain. With
/// `failed` (zeroed by the caller, as long as `out`) they are marked instead of removed.
Result<std::size_t> run_stage(const Stage& stage, const StageRows& which, const BlockView& out,
                              Pulling& pulling, std::uint8_t* failed = nullptr);

}  // namespace penstock
