#include "base/report.h"

#include <cstdio>
#include <utility>

#include "base/mutex.h"
#include "penstock/report_sink.h"

namespace penstock {
namespace {

Mutex mutex;
ReportSink current PENSTOCK_GUARDED_BY(mutex);

}  // namespace

ReportSink set_report_sink(ReportSink sink) {
  Lock lock(mutex);
  return std::exchange(current, std::move(sink));
}

void report(const std::string& text) {
  ReportSink sink;
  {
    Lock lock(mutex);
    sink = current;
  }
  if (sink) {
    sink(text);
  } else {
    std::fprintf(stderr, "penstock: %s\n", text.c_str());
  }
}

}  // namespace penstock
