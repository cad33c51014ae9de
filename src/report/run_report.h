#pragma once
// Reports of one run, from what was recorded of it and nothing else.

#include <memory>

#include "penstock/report.h"
#include "trace/recording.h"

namespace penstock {

/// Computes the report: numbers, verdict, advice, estimates.
Report report_of(std::shared_ptr<const trace::Recording> recording);

}  // namespace penstock
