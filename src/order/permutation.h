#pragma once
// Which sample comes next. The order of a pass is a pure function of (size, seed, pass, round): no
// table, no state, the same on every machine, with random access to any position.

#include <cstdint>
#include <span>

#include "kernel/feistel.h"

namespace penstock {

/// A keyed bijection on [0, size): the order of one pass. Random access in O(1) time and memory.
/// Immutable and thread-safe; copies are cheap.
class Permutation {
 public:
  static constexpr std::uint64_t kSizeMax = std::uint64_t{1} << 62;

  /// A different value of any field gives a different order. The size is not part of the key:
  /// orders of two similar sizes under one key resemble each other.
  struct Key {
    std::uint64_t seed = 0;
    std::uint64_t pass = 0;
    std::uint64_t round = 0;
  };

  /// `size` from 0 to kSizeMax. Takes tens of nanoseconds for any size.
  Permutation(std::uint64_t size, Key key);

  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// The number at `position`, which must be below size(). At most two steps of the network on
  /// average from 512 numbers up, 1024 / size below: a tiny pass takes 1024 steps in all.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t position) const;

  /// The position of `number`: inverse((*this)(p)) == p.
  [[nodiscard]] std::uint64_t inverse(std::uint64_t number) const;

  /// Replaces every position by its number: the results of operator(), several times as fast if the
  /// CPU has AVX2. Positions may repeat and come in any order. A position out of range throws and
  /// leaves the span partly converted.
  void apply(std::span<std::uint64_t> positions) const;

 private:
  void apply_chunk(std::span<std::uint64_t> positions) const;

  std::uint64_t size_;
  Feistel network_;
};

/// The seed of window number `window` of a shuffle by windows; window 0 has the seed of the
/// shuffle.
constexpr std::uint64_t window_seed(std::uint64_t seed, std::uint64_t window) {
  return seed + window * 0x9E3779B97F4A7C15ULL;
}

}  // namespace penstock
