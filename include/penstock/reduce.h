#pragma once
// Values of replicas, and how they are added up.

#include <cstdint>

namespace penstock {

enum class Reduce : std::uint8_t {
  sum,
  mean,  // over the samples of all replicas: divides by their true number
};

/// A sum over `count` samples. The mean of such values divides once, by the sum of the counts.
template <typename T>
struct Counted {
  T sum = {};
  std::uint64_t count = 0;
};

}  // namespace penstock
