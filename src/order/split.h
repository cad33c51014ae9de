#pragma once
// Which elements are in the first part of a split: the given fraction, chosen by a permutation.

#include <cstdint>
#include <memory>

#include "order/chosen.h"

namespace penstock {

struct SplitOrder {
  double fraction = 0;
  std::uint64_t seed = 0;
  bool rest = false;  // the second part
};

/// round(fraction * size), rounding halves up.
std::uint64_t first_part_size(std::uint64_t size, double fraction);

/// Element i is in the first part if the permutation of the seed puts it among the first ones. No
/// shuffle uses that permutation, so a split of shuffled data is not a prefix of it.
std::shared_ptr<const Chosen> choose_part(std::uint64_t size, const SplitOrder& order);

}  // namespace penstock
