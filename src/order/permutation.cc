#include "order/permutation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "base/mix.h"
#include "kernel/feistel.h"

namespace penstock {

namespace {

// Separates these keys from those of random ops, which start from the bare seed ("order").
constexpr std::uint64_t kDomain = 0x6f72646572ULL;

// Walked values and their slots: 10 KiB, so a chunk stays in the L1 cache with its positions.
constexpr std::size_t kChunk = 1024;

// Halves of one or two bits have too few distinct rounds: on the smallest power of two the 120
// orders of five numbers are visibly not equally frequent (z = 23).
constexpr int kBitsMin = 10;

int network_bits(std::uint64_t size) {
  return std::max(kBitsMin, static_cast<int>(std::bit_width(size == 0 ? 0 : size - 1)));
}

std::uint64_t network_key(Permutation::Key key) {
  return combine(combine(combine(kDomain, key.seed), key.pass), key.round);
}

}  // namespace

Permutation::Permutation(std::uint64_t size, Key key)
    : size_(size), network_(network_bits(size), network_key(key)) {
  PENSTOCK_CHECK_LE(size, kSizeMax);
}

// The network permutes [0, 2^bits). Following its cycle until it returns below `size` is again a
// bijection, and it terminates: the cycle leads back to its start.
std::uint64_t Permutation::operator()(std::uint64_t position) const {
  PENSTOCK_CHECK_LT(position, size_);
  if (size_ == 1) return 0;
  std::uint64_t number = network_.encode(position);
  while (number >= size_) number = network_.encode(number);
  return number;
}

std::uint64_t Permutation::inverse(std::uint64_t number) const {
  PENSTOCK_CHECK_LT(number, size_);
  if (size_ == 1) return 0;
  std::uint64_t position = network_.decode(number);
  while (position >= size_) position = network_.decode(position);
  return position;
}

void Permutation::apply(std::span<std::uint64_t> positions) const {
  while (!positions.empty()) {
    const std::size_t count = std::min(kChunk, positions.size());
    apply_chunk(positions.first(count));
    positions = positions.subspan(count);
  }
}

void Permutation::apply_chunk(std::span<std::uint64_t> positions) const {
  std::uint64_t highest = 0;
  for (const std::uint64_t position : positions) highest = std::max(highest, position);
  // A position beyond the size may be on a cycle that never returns below it.
  PENSTOCK_CHECK_LT(highest, size_);
  if (size_ == 1) return;
  network_.encode_block(positions);

  // A slot is always stored and only sometimes kept: a branch would be mispredicted half the time.
  std::array<std::uint16_t, kChunk> slots;
  std::size_t left = 0;
  for (std::size_t slot = 0; slot < positions.size(); ++slot) {
    slots[left] = static_cast<std::uint16_t>(slot);
    left += positions[slot] >= size_ ? 1 : 0;
  }
  std::array<std::uint64_t, kChunk> walking;
  while (left > 0) {
    for (std::size_t i = 0; i < left; ++i) walking[i] = positions[slots[i]];
    network_.encode_block(std::span(walking).first(left));
    std::size_t kept = 0;
    for (std::size_t i = 0; i < left; ++i) {
      const std::uint16_t slot = slots[i];
      positions[slot] = walking[i];
      slots[kept] = slot;
      kept += walking[i] >= size_ ? 1 : 0;
    }
    left = kept;
  }
}

}  // namespace penstock
