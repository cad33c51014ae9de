#include "order/block_order.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

#include "base/check.h"
#include "base/mix.h"

namespace penstock {
namespace {

// Keep these permutations apart from those of other shuffles with the same seed.
constexpr std::uint64_t kBlocks = 0x626c6f636b73ULL;  // "blocks"
constexpr std::uint64_t kMixed = 0x6d69786564ULL;     // "mixed"

std::uint64_t seed_of(std::uint64_t seed, std::uint64_t purpose) {
  return combine(mix(seed), purpose);
}

}  // namespace

BlockOrder::BlockOrder(const Sizes& sizes, Permutation::Key key)
    : sizes_(sizes),
      window_blocks_(std::max<std::uint64_t>(1, std::min(sizes.window_blocks(), sizes.blocks()))),
      key_(key),
      blocks_(sizes.blocks(), {seed_of(key.seed, kBlocks), key.pass, key.round}),
      short_slot_(sizes.samples % sizes.block == 0 ? sizes.blocks()
                                                   : blocks_.inverse(sizes.blocks() - 1)) {}

std::uint64_t BlockOrder::start_of(std::uint64_t slot) const {
  if (slot <= short_slot_) return slot * sizes_.block;
  return (slot - 1) * sizes_.block + sizes_.samples % sizes_.block;
}

std::uint64_t BlockOrder::slot_at(std::uint64_t position) const {
  const std::uint64_t full = position / sizes_.block;
  if (full < short_slot_) return full;
  const std::uint64_t after_short = start_of(short_slot_ + 1);
  return position < after_short ? short_slot_
                                : short_slot_ + 1 + (position - after_short) / sizes_.block;
}

BlockOrder::Window BlockOrder::window_at(std::uint64_t position) const {
  const std::uint64_t number = slot_at(position) / window_blocks_;
  const std::uint64_t first_slot = number * window_blocks_;
  const std::uint64_t slots = std::min(window_blocks_, sizes_.blocks() - first_slot);
  const std::uint64_t end_slot = first_slot + slots;
  return {number, first_slot, slots, start_of(first_slot),
          end_slot == sizes_.blocks() ? sizes_.samples : start_of(end_slot)};
}

std::uint64_t BlockOrder::operator()(std::uint64_t position) const {
  apply({&position, 1});
  return position;
}

void BlockOrder::apply(std::span<std::uint64_t> positions) const {
  while (!positions.empty()) {
    PENSTOCK_CHECK_LT(positions.front(), sizes_.samples);
    const Window window = window_at(positions.front());
    const auto outside = std::ranges::find_if(positions, [&](std::uint64_t position) {
      return position < window.first || position >= window.end;
    });
    const auto count = static_cast<std::size_t>(outside - positions.begin());
    apply_window(window, positions.first(count));
    positions = positions.subspan(count);
  }
}

void BlockOrder::apply_window(const Window& window, std::span<std::uint64_t> positions) const {
  constexpr std::size_t kAtOnce = 256;
  const Permutation mixed(
      window.end - window.first,
      {window_seed(seed_of(key_.seed, kMixed), window.number), key_.pass, key_.round});
  // Permuting few blocks takes many steps for each: worth doing once for all samples.
  std::array<std::uint64_t, kAtOnce> known;
  const bool know = window.slots <= kAtOnce && window.slots <= positions.size();
  if (know) {
    const std::span blocks = std::span(known).first(window.slots);
    std::iota(blocks.begin(), blocks.end(), window.first_slot);
    blocks_.apply(blocks);
  }
  while (!positions.empty()) {
    const std::span some = positions.first(std::min(kAtOnce, positions.size()));
    for (std::uint64_t& position : some) position -= window.first;
    mixed.apply(some);
    std::array<std::uint64_t, kAtOnce> of_some;
    const std::span blocks = std::span(of_some).first(some.size());
    for (std::size_t i = 0; i < some.size(); ++i) {
      some[i] += window.first;
      blocks[i] = slot_at(some[i]);
      some[i] -= start_of(blocks[i]);
    }
    if (know) {
      for (std::uint64_t& block : blocks) block = known[block - window.first_slot];
    } else {
      blocks_.apply(blocks);
    }
    for (std::size_t i = 0; i < some.size(); ++i) some[i] += blocks[i] * sizes_.block;
    positions = positions.subspan(some.size());
  }
}

}  // namespace penstock
