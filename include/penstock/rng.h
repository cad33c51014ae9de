#pragma once
// Random numbers that depend only on a key: the same key gives the same numbers, on any thread, in
// any order, after any resume. Philox 4x32 with 10 rounds (Salmon et al., 2011).

#include <array>
#include <cstdint>
#include <limits>

namespace penstock {

/// The generator that a map function receives for its sample. A standard uniform random bit
/// generator.
class Rng {
 public:
  using result_type = std::uint64_t;

  /// `key` selects the stream, `number` the sample within it; draws count from 0.
  Rng(std::uint64_t key, std::uint64_t number) : key_(key), number_(number) {}

  /// The next 64 bits.
  std::uint64_t operator()();
  static constexpr std::uint64_t min() { return 0; }
  static constexpr std::uint64_t max() { return std::numeric_limits<std::uint64_t>::max(); }

  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in [0, count); count must be positive.
  std::uint64_t integer(std::uint64_t count);
  /// Standard normal.
  double normal();

 private:
  std::uint64_t key_;
  std::uint64_t number_;
  std::uint64_t draw_ = 0;
  std::uint64_t spare_ = 0;
};

/// One block of Philox 4x32-10.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

}  // namespace penstock
