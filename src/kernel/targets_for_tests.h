#pragma once
// For tests: runs a piece of code once for every CPU target of this machine. Tests that include it
// are compiled with PENSTOCK_HIGHWAY (tests/CMakeLists.txt).

#ifdef PENSTOCK_HIGHWAY
#include <hwy/highway.h>
#include <hwy/targets.h>
#endif

namespace penstock {

/// Returns the number of targets.
template <typename Body>
int for_each_target(Body body) {
#ifdef PENSTOCK_HIGHWAY
  int targets = 0;
  const auto all = hwy::SupportedTargets();
  for (auto left = all; left != 0; left &= left - 1) {
    hwy::SetSupportedTargetsForTest(left & ~(left - 1));
    body();
    ++targets;
  }
  hwy::SetSupportedTargetsForTest(0);
  return targets;
#else
  body();
  return 1;
#endif
}

}  // namespace penstock
