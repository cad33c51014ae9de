#pragma once
// Reports of one run, from its trace.

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/report.h"

namespace penstock {

/// Adds up what is recorded of run `trace_run`, which was epoch `epoch`. Thread-safe.
Report report_of_run(std::uint32_t trace_run, std::uint64_t epoch,
                     std::vector<std::string> decisions);

}  // namespace penstock
