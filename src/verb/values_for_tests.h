#pragma once
// For tests of stages: single numbers by position, and the place in a failure.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "plan/stage.h"
#include "sample/rows.h"
#include "verb/staged_for_tests.h"

namespace penstock {

inline const ElementSpec kNumber = ElementSpec::single(Dtype::i64);

struct Values {
  std::vector<std::int64_t> values;
  Numbers ids;
  Numbers occurrences;
};

inline Values values_of(const Stage& stage, Turn turn, const Numbers& positions) {
  Scratch scratch;
  const Scratch::Frame frame(scratch);
  const ScratchBlock block(kNumber, positions.size(), scratch);
  auto done = stage.produce({turn, positions}, block.view(), scratch);
  if (!done) done.failure().raise();
  const auto values = Block(block.view()).column<std::int64_t>();
  const Identity& identity = block.view().identity;
  return {{values.begin(), values.end()},
          {identity.sample_id, identity.sample_id + positions.size()},
          {identity.occurrence, identity.occurrence + positions.size()}};
}

/// The place of the SampleError that is thrown.
inline Where failure(const Stage& stage, const Numbers& positions) {
  try {
    values_of(stage, {}, positions);
  } catch (const SampleError& error) {
    return error.where();
  }
  ADD_FAILURE() << "nothing failed";
  return {};
}

}  // namespace penstock
