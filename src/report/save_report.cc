// tested in src/feed/save_report_test.cc
#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/printable.h"
#include "penstock/error.h"
#include "penstock/io.h"
#include "penstock/report.h"
#include "report/page.h"
#include "report/run_report.h"
#include "report/trace_file.h"

namespace penstock {

void Report::save(const std::string& path) const {
  if (!recording) throw ConfigError("report: there is nothing to save: no epoch has begun");
  if (path.ends_with(".json")) {
    write_trace(path, *recording);
  } else if (path.ends_with(".html")) {
    if (auto done = Io::real().publish(path, page_of(*this)); !done)
      throw ResourceError(
          fmt::format("the report could not be written: {}", done.failure().message), {},
          "check the folder, and the space on the disk");
  } else {
    throw ConfigError(fmt::format("report: \"{}\" has no known extension", printable(path)), {},
                      "save a page as run.html, or a trace for Chrome and Perfetto as run.json");
  }
}

Report read_report(const std::string& path) {
  return report_of(std::make_shared<trace::Recording>(read_trace(path)));
}

}  // namespace penstock
