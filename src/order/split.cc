#include "order/split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/mix.h"
#include "order/permutation.h"

namespace penstock {

std::uint64_t first_part_size(std::uint64_t size, double fraction) {
  const double wanted = std::floor(fraction * static_cast<double>(size) + 0.5);
  if (wanted >= static_cast<double>(size)) return size;
  return static_cast<std::uint64_t>(std::max(0.0, wanted));
}

std::shared_ptr<const Chosen> choose_part(std::uint64_t size, const SplitOrder& order) {
  constexpr std::uint64_t kSplit = 0x73706c6974ULL;  // "split"
  constexpr std::uint64_t kAtOnce = 1024;
  const Permutation permutation(size, {combine(mix(order.seed), kSplit), 0, 0});
  const std::uint64_t first = first_part_size(size, order.fraction);
  std::vector<std::uint64_t> words((size + 63) / 64, 0);
  std::array<std::uint64_t, kAtOnce> ranks;
  for (std::uint64_t begin = 0; begin < size; begin += kAtOnce) {
    const std::span some(ranks.data(), std::min(kAtOnce, size - begin));
    std::iota(some.begin(), some.end(), begin);
    permutation.apply(some);
    for (std::uint64_t i = 0; i < some.size(); ++i)
      if ((some[i] < first) != order.rest) words[(begin + i) / 64] |= 1ULL << (i % 64);
  }
  return std::make_shared<Chosen>(size, std::move(words));
}

}  // namespace penstock
