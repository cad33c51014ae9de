#pragma once
// Why an epoch was as fast as it was, in words.

#include <string>

#include "penstock/report.h"
#include "report/load.h"
#include "trace/recording.h"

namespace penstock {

struct Verdict {
  Cause cause = Cause::nothing_ran;
  std::string text;    // the first sentence names the cause
  std::string advice;  // empty if there is nothing to do
};

/// `report` has everything but the verdict.
Verdict verdict_of(const trace::Recording& recording, const Load& load, const Report& report);

}  // namespace penstock
