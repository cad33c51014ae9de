#pragma once
// Which elements are in the first part of a split: as many as the fraction says, by a permutation.

#include <cstdint>
#include <memory>

#include "order/chosen.h"

namespace penstock {

struct SplitOrder {
  double fraction = 0;
  std::uint64_t seed = 0;
  bool rest = false;  // the second part
};

/// round(fraction * size), where a half is rounded up.
std::uint64_t first_part_size(std::uint64_t size, double fraction);

/// Element i is in the first part when the permutation of the seed puts it among the first ones.
/// The permutation is none that a shuffle has: a split of shuffled data takes no prefix of it.
std::shared_ptr<const Chosen> choose_part(std::uint64_t size, const SplitOrder& order);

}  // namespace penstock
