#pragma once
// What loaders and feeds share: options, and the report.

#include <string>
#include <vector>

#include "interpreter.h"
#include "penstock/loader.h"

namespace penstock::python {

/// From the keywords that penstock.loader has checked.
LoaderOptions loader_options(const nb::dict& given);
nb::list entries_of(const Ledger& ledger);
/// Counters and waits of one epoch.
nb::dict report_of(std::uint32_t trace_run, const std::vector<std::string>& decisions);

}  // namespace penstock::python
