#pragma once
// Estimates: how much of an epoch's time a change would save.

#include <vector>

#include "penstock/report.h"
#include "report/load.h"
#include "trace/recording.h"

namespace penstock {

/// The largest gain first. Changes that would save less than 3 % are left out.
std::vector<WhatIf> what_if(const trace::Recording& recording, const Load& load);

}  // namespace penstock
