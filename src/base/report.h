#pragma once
// The only way the library prints: reports go to a sink, stderr by default.

#include <functional>
#include <string>

namespace penstock {

using ReportSink = std::function<void(const std::string& text)>;

/// Replaces the sink and returns the previous one; an empty one means stderr.
ReportSink set_report_sink(ReportSink sink);
/// Thread-safe.
void report(const std::string& text);

}  // namespace penstock
