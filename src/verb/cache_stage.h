#pragma once
// The rows of a stage, from a store if it has them.

#include <cstdint>
#include <memory>

#include "plan/stage.h"
#include "store/row_store.h"

namespace penstock {

struct CachedAt {
  std::uint64_t first_id = 0;  // rows are stored with ids counted from this one
  std::uint64_t rounds = 1;    // of the repeats below
};

/// Computes the rows that the store lacks, always in the first turn, and stores them.
StagePtr cache_stage(StagePtr input, std::shared_ptr<RowStore> store, const CachedAt& at);

}  // namespace penstock
