#include <algorithm>

#include "base/check.h"
#include "graph/node.h"

namespace penstock {

StepsOf steps_of(const Node& batched, std::optional<Tail> tail, std::uint64_t drawn_seed) {
  PENSTOCK_CHECK(batched.batched);
  StepsWalk walk{tail, drawn_seed};
  Steps steps = walk.of(batched);
  return {std::move(steps), std::move(walk.leaves)};
}

std::uint64_t rows_of(const Node& batched) {
  // Parts are added one at a time, perhaps thousands of them; each is visited once.
  if (batched.facts().appends) return batched.step_rows;
  return steps_of(batched, std::nullopt, 0).steps.rows();
}

}  // namespace penstock
