#pragma once
// Work inside a sequence: what must be computed to know which rows come.

#include <cstdint>

#include "plan/cursor.h"
#include "plan/stage.h"

namespace penstock {

/// Which rows of the stage: those from `first` on, or all of `pulled`.
struct StageRows {
  Turn turn;
  std::uint64_t first = 0;
  const BlockView* pulled = nullptr;
};

/// Fills `out`. Rows that cannot be made leave it where failures are collected: returns how many
/// stayed. With `failed` (zeroed by the caller, as long as `out`) they stay and are marked.
Result<std::size_t> run_stage(const Stage& stage, const StageRows& which, const BlockView& out,
                              Pulling& pulling, std::uint8_t* failed = nullptr);

}  // namespace penstock
