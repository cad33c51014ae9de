#pragma once
// The cut: one step's rows over R shares. Contiguous, sizes differ by at most one, larger first.

#include <cstdint>

namespace penstock {

struct Cut {
  std::uint64_t rows = 0;    // of the step
  std::uint64_t shares = 1;  // R

  [[nodiscard]] std::uint64_t first(std::uint64_t share) const {
    const std::uint64_t extra = rows % shares;
    return share * (rows / shares) + (share < extra ? share : extra);
  }
  [[nodiscard]] std::uint64_t size(std::uint64_t share) const {
    return rows / shares + (share < rows % shares ? 1 : 0);
  }
};

}  // namespace penstock
