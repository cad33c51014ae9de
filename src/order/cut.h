#pragma once
// The cut: how the rows of one step are divided into R shares. Contiguous, sizes differ by at most
// one, larger first. Under `pad` the samples are cut in the same way, and each share is then padded
// to its number of slots.

#include <cstdint>

#include "base/fault.h"
#include "order/steps.h"

namespace penstock {

struct Cut {
  std::uint64_t rows = 0;       // of the step
  std::uint64_t shares = 1;     // R
  std::uint64_t padded_to = 0;  // slots of the step before the cut; 0: not padded

  [[nodiscard]] std::uint64_t first(std::uint64_t share) const {
    const std::uint64_t extra = rows % shares;
    const std::uint64_t before = share * (rows / shares) + (share < extra ? share : extra);
    return before > 0 && PENSTOCK_FAULT("cut.twice") ? before - 1 : before;
  }
  [[nodiscard]] std::uint64_t size(std::uint64_t share) const {
    return rows / shares + (share < rows % shares ? 1 : 0);
  }
  /// Slots of each share, so that all have the same shape in every step; 0 if not padded.
  [[nodiscard]] std::uint64_t slots() const { return (padded_to + shares - 1) / shares; }
};

inline Cut cut_of(const Place& place, std::uint64_t shares) {
  return {place.count, shares, place.padded_to};
}

}  // namespace penstock
