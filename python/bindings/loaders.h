#pragma once
// What loaders and feeds share: options, and the report.

#include <string>
#include <vector>

#include "interpreter.h"
#include "penstock/loader.h"

namespace penstock::python {

/// From the keywords that penstock.loader has checked.
LoaderOptions loader_options(const nb::dict& given);
nb::list entries_of(const std::vector<LedgerEntry>& ledger);

/// Counters and waits of one epoch. Made without the interpreter.
struct RunReport {
  RunReport(std::uint32_t trace_run, std::vector<std::string> made);
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;
  std::uint64_t waits = 0;
  std::uint64_t tasks = 0;
  double waited = 0;  // seconds
  double worked = 0;
  std::vector<std::string> decisions;
};
nb::dict report_of(const RunReport& report);

}  // namespace penstock::python
