#pragma once
// The random key: (seed, op and its ordinal, pass, occurrence, sample key, draw number).

#include <cstdint>

#include "base/mix.h"
#include "penstock/error.h"
#include "penstock/rng.h"

namespace penstock {

/// The part that all samples of one op in one pass share.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t op = 0;
  std::uint64_t pass = 0;

  [[nodiscard]] Rng rng(std::uint64_t occurrence, SampleKey sample) const {
    const std::uint64_t shared = combine(combine(mix(seed), op), pass);
    return Rng(combine(combine(shared, occurrence), sample.source), sample.number);
  }
};

}  // namespace penstock
