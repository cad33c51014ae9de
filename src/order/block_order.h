#pragma once
// The order of a shuffle that reads blocks of neighbors together: for storage that hates random
// reads. A pure function of (sizes, seed, pass, round), in O(1) time and memory for each position.

#include <cstdint>
#include <span>

#include "order/permutation.h"

namespace penstock {

/// The samples are cut into blocks of consecutive ones, the last of which may be shorter. The
/// blocks are permuted; the slots of this order, from 0, are grouped into windows; and the samples
/// of each window are permuted. So the samples of a window are exactly those of its blocks.
///
/// position -> window, index inside it -> permuted index -> slot -> block -> sample
///
/// Immutable and thread-safe; copies are cheap.
class BlockOrder {
 public:
  static constexpr std::uint64_t kWindowBlocks = 16;

  struct Sizes {
    std::uint64_t samples = 0;
    std::uint64_t block = 1;   // samples of a block; positive
    std::uint64_t window = 0;  // samples mixed at a time, rounded up to blocks; 0: kWindowBlocks
    [[nodiscard]] std::uint64_t blocks() const {
      return samples / block + (samples % block != 0 ? 1 : 0);
    }
    [[nodiscard]] std::uint64_t window_blocks() const {
      return window == 0 ? kWindowBlocks : window / block + (window % block != 0 ? 1 : 0);
    }
  };

  BlockOrder(const Sizes& sizes, Permutation::Key key);

  /// The sample at `position`, which must be below `samples`.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t position) const;
  /// Replaces every position by its sample; several times as fast where positions are neighbors.
  void apply(std::span<std::uint64_t> positions) const;

 private:
  /// A window: its slots, and the positions of its samples.
  struct Window {
    std::uint64_t number;
    std::uint64_t first_slot;
    std::uint64_t slots;
    std::uint64_t first;
    std::uint64_t end;
  };
  /// Where the samples of `slot` begin in the order of blocks.
  [[nodiscard]] std::uint64_t start_of(std::uint64_t slot) const;
  [[nodiscard]] std::uint64_t slot_at(std::uint64_t position) const;
  [[nodiscard]] Window window_at(std::uint64_t position) const;
  void apply_window(const Window& window, std::span<std::uint64_t> positions) const;

  Sizes sizes_;
  std::uint64_t window_blocks_;
  Permutation::Key key_;
  Permutation blocks_;        // from slots to blocks
  std::uint64_t short_slot_;  // the slot of the short block; the number of slots if there is none
};

}  // namespace penstock
