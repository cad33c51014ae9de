// A trace may be of any run, and cut anywhere: any bytes are a recording that can be shown, or a
// ConfigError.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/json.h"
#include "penstock/error.h"
#include "report/page.h"
#include "report/recording_json.h"
#include "report/run_report.h"
#include "report/trace_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const auto recording =
        std::make_shared<penstock::trace::Recording>(penstock::parse_trace(text, "run.json"));
    const penstock::Report report = penstock::report_of(recording);
    if (report.str().empty() || report.verdict.empty()) std::abort();
    if (penstock::page_of(report).empty()) std::abort();
    if (penstock::compare_reports(report, report).empty()) std::abort();
    const penstock::Json json = penstock::json_of(*recording);
    if (penstock::json_of(penstock::recording_of(json)) != json) std::abort();
  } catch (const penstock::ConfigError&) {
  }
  return 0;
}
