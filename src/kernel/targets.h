#pragma once
// For tests: runs a piece of code once for every CPU target that this machine has.

#ifdef PENSTOCK_HIGHWAY
#include <hwy/highway.h>
#include <hwy/targets.h>
#endif

namespace penstock {

template <typename Body>
void for_each_target(Body body) {
#ifdef PENSTOCK_HIGHWAY
  const auto all = hwy::SupportedTargets();
  for (auto left = all; left != 0; left &= left - 1) {
    hwy::SetSupportedTargetsForTest(left & ~(left - 1));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
#else
  body();
#endif
}

}  // namespace penstock
