#include "kernel/feistel.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "base/mix.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define PENSTOCK_FEISTEL_X86 1
#endif

namespace penstock {

// Everything is inlined into its caller, so that each target compiles its own copy of the one
// definition. 32-bit lanes hold the halves of words up to 64 bits.
struct FeistelLoop {
  // One AVX-512 register of 32-bit halves. With a constant count the vectorizer needs no epilogue,
  // in which the short blocks of a cycle walk would spend their time.
  static constexpr std::size_t kLanes = 16;

  // The top bits of a product are its best mixed ones, hence the shift instead of a mask.
  [[gnu::always_inline]] static std::uint32_t scramble(std::uint32_t half, Feistel::RoundKey key,
                                                       int bits) {
    std::uint32_t product = (half ^ key.flip) * 0x9e3779b1U;
    product ^= product >> 15;
    return (product * key.factor) >> (32 - bits);
  }

  [[gnu::always_inline]] static std::uint64_t encode(const Feistel& network, std::uint64_t word) {
    const int low_bits = network.low_bits_;
    auto high = static_cast<std::uint32_t>(word >> low_bits);
    auto low = static_cast<std::uint32_t>(word & ((std::uint64_t{1} << low_bits) - 1));
#pragma GCC unroll 4
    for (std::size_t round = 0; round < Feistel::kRounds; round += 2) {
      high ^= scramble(low, network.keys_[round], network.high_bits_);
      low ^= scramble(high, network.keys_[round + 1], low_bits);
    }
    return std::uint64_t{high} << low_bits | low;
  }

  [[gnu::always_inline]] static void encode_lanes(const Feistel& network, std::uint64_t* words) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) words[lane] = encode(network, words[lane]);
  }

  [[gnu::always_inline]] static void encode_block(const Feistel& shared,
                                                  std::span<std::uint64_t> words) {
    const Feistel network = shared;  // A copy that `words` cannot alias stays in registers.
    std::uint64_t* word = words.data();
    std::size_t left = words.size();
    for (; left >= kLanes; left -= kLanes, word += kLanes) encode_lanes(network, word);
    if (left == 0) return;
    std::array<std::uint64_t, kLanes> rest{};
    std::copy_n(word, left, rest.begin());
    encode_lanes(network, rest.data());
    std::copy_n(rest.begin(), left, word);
  }
};

namespace {

void encode_plain(const Feistel& network, std::span<std::uint64_t> words) {
  FeistelLoop::encode_block(network, words);
}

#if PENSTOCK_FEISTEL_X86
__attribute__((target("arch=x86-64-v3"))) void encode_v3(const Feistel& network,
                                                         std::span<std::uint64_t> words) {
  FeistelLoop::encode_block(network, words);
}

__attribute__((target("arch=x86-64-v4"))) void encode_v4(const Feistel& network,
                                                         std::span<std::uint64_t> words) {
  FeistelLoop::encode_block(network, words);
}
#endif

}  // namespace

Feistel::Feistel(int bits, std::uint64_t key) : high_bits_(bits / 2), low_bits_(bits - bits / 2) {
  PENSTOCK_CHECK_LE(kBitsMin, bits);
  PENSTOCK_CHECK_LE(bits, kBitsMax);
  for (std::size_t round = 0; round < kRounds; ++round) {
    const std::uint64_t word = combine(key, round);
    keys_[round] = {.flip = static_cast<std::uint32_t>(word),
                    .factor = static_cast<std::uint32_t>(word >> 32) | 1U};
  }
}

std::uint64_t Feistel::encode(std::uint64_t word) const {
  return FeistelLoop::encode(*this, word);
}

std::uint64_t Feistel::decode(std::uint64_t word) const {
  auto high = static_cast<std::uint32_t>(word >> low_bits_);
  auto low = static_cast<std::uint32_t>(word & ((std::uint64_t{1} << low_bits_) - 1));
  for (std::size_t round = kRounds; round > 0; round -= 2) {
    low ^= FeistelLoop::scramble(high, keys_[round - 1], low_bits_);
    high ^= FeistelLoop::scramble(low, keys_[round - 2], high_bits_);
  }
  return std::uint64_t{high} << low_bits_ | low;
}

void Feistel::encode_block(std::span<std::uint64_t> words) const {
  static const auto best = targets().back().encode_block;
  best(*this, words);
}

std::span<const Feistel::Target> Feistel::targets() {
#if PENSTOCK_FEISTEL_X86
  static constexpr std::array<Target, 3> kTargets{
      {{"plain", encode_plain}, {"x86-64-v3", encode_v3}, {"x86-64-v4", encode_v4}}};
  // Each level contains the previous one, so the usable ones are a prefix.
  static const std::size_t usable = __builtin_cpu_supports("x86-64-v4")   ? 3U
                                    : __builtin_cpu_supports("x86-64-v3") ? 2U
                                                                          : 1U;
  return std::span(kTargets).first(usable);
#else
  static constexpr std::array<Target, 1> kTargets{{{"plain", encode_plain}}};
  return kTargets;
#endif
}

}  // namespace penstock
