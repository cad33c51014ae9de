#include "report/run_report.h"

#include <fmt/format.h>

#include <utility>

#include "trace/trace.h"

namespace penstock {

Report report_of_run(std::uint32_t trace_run, std::uint64_t epoch,
                     std::vector<std::string> decisions) {
  constexpr double kSecond = 1e-9;
  Report report;
  report.epoch = epoch;
  report.decisions = std::move(decisions);
  for (const trace::Event& event : trace::events_of(trace_run)) {
    const double took = static_cast<double>(event.end - event.start) * kSecond;
    if (event.kind == trace::Kind::delivered) {
      ++report.steps;
      report.rows += event.rows;
    } else if (event.kind == trace::Kind::waited) {
      ++report.waits;
      report.wait_seconds += took;
    } else if (event.kind != trace::Kind::ready) {
      ++report.tasks;
      report.work_seconds += took;
    }
  }
  return report;
}

std::string Report::str() const {
  std::string text =
      fmt::format("epoch {}: steps {}, rows {}; waits {}, {:.3f} s; tasks {}, {:.3f} s of work",
                  epoch, steps, rows, waits, wait_seconds, tasks, work_seconds);
  for (const std::string& line : decisions) text += fmt::format("\n  {}", line);
  return text;
}

}  // namespace penstock
