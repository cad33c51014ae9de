#pragma once
// A keyed bijection of b-bit words, one word or a block at a time. Every target returns the same
// results; the block form is only faster. Constants, round count and key schedule determine the
// order that a seed gives: changing one changes every shuffled run. Immutable after construction
// and thread-safe.

#include <array>
#include <cstdint>
#include <span>

namespace penstock {

/// An alternating Feistel network on [0, 2^bits). The word is split into a high half of
/// floor(bits/2) and a low half of ceil(bits/2) bits; the rounds change them in turn, so the halves
/// need not have equal width.
class Feistel {
 public:
  static constexpr int kBitsMin = 2;
  static constexpr int kBitsMax = 64;

  /// `bits` from kBitsMin to kBitsMax.
  Feistel(int bits, std::uint64_t key);

  /// `word` must be below 2^bits. decode() inverts encode().
  [[nodiscard]] std::uint64_t encode(std::uint64_t word) const;
  [[nodiscard]] std::uint64_t decode(std::uint64_t word) const;

  /// encode() on every word, in place, with the best target of this CPU.
  void encode_block(std::span<std::uint64_t> words) const;

  /// One build of the block loop. All run on this CPU; encode_block uses the last.
  struct Target {
    const char* name;
    void (*encode_block)(const Feistel& network, std::span<std::uint64_t> words);
  };
  [[nodiscard]] static std::span<const Target> targets();

 private:
  friend struct FeistelLoop;

  // Chosen by statistics on the orders of 2 to 5000 numbers under up to 240,000 keys: on 1024
  // numbers 4 rounds fail at once (|z| = 23 after 5,000 keys) and 6 late (5.7 after 120,000); with
  // 8 the largest of 260 scores is 3.2.
  static constexpr int kRounds = 8;
  struct RoundKey {
    std::uint32_t flip;
    std::uint32_t factor;
  };

  std::array<RoundKey, kRounds> keys_;
  int high_bits_;
  int low_bits_;
};

}  // namespace penstock
