#pragma once
// 64-bit mixing for keys and digests. Part of the order and of every random key: a change here
// changes the results of users' seeds, and makes the golden vectors fail.

#include <cstdint>

namespace penstock {

/// A bijection of 64-bit words whose output bits each depend on all input bits.
constexpr std::uint64_t mix(std::uint64_t word) {
  word ^= word >> 30;
  word *= 0xbf58476d1ce4e5b9ULL;
  word ^= word >> 27;
  word *= 0x94d049bb133111ebULL;
  return word ^ (word >> 31);
}

/// Adds `word` to the running key `key`; the order of the calls matters.
constexpr std::uint64_t combine(std::uint64_t key, std::uint64_t word) {
  return mix(key ^ mix(word + 0x9e3779b97f4a7c15ULL));
}

}  // namespace penstock
