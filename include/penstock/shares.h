#pragma once

#include <cstdint>

namespace penstock {

/// Which shares of each step are loaded here: `count` of `total`, from number `first` on.
struct Shares {
  std::uint32_t total = 1;
  std::uint32_t first = 0;
  std::uint32_t count = 1;
};

}  // namespace penstock
