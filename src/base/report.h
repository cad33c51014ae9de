#pragma once
// The only way the library speaks unasked: reports go to a sink, stderr by default.

#include <functional>
#include <string>

namespace penstock {

using ReportSink = std::function<void(const std::string& text)>;

/// Replaces the sink and returns the one before; an empty one is stderr.
ReportSink set_report_sink(ReportSink sink);
/// Thread-safe.
void report(const std::string& text);

}  // namespace penstock
