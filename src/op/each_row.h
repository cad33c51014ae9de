#pragma once

#include <cstddef>
#include <utility>

#include "base/cancelled.h"
#include "op/op.h"

namespace penstock {

/// Calls `body(row)` for each row of `in` until one fails or the work is cancelled; a failure gets
/// the number of its row. Scratch memory of a row is freed after it.
template <typename Body>
Result<void> each_row(const BlockView& in, const OpContext& context, Body body) {
  for (std::size_t row = 0; row < in.rows; ++row) {
    if (!context.at_sample(in.identity.sample_id[row])) return cancelled(row);
    const Scratch::Frame frame(context.scratch);
    Result<void> done = body(row);
    if (done) continue;
    done.failure().row = row;
    return done;
  }
  return {};
}

}  // namespace penstock
