#pragma once
// Where the library prints: stalls, plan warnings, skipped files and other reports go to one sink
// per process, stderr by default. Nothing else prints.

#include <functional>
#include <string>

namespace penstock {

/// Receives one report, without a newline at its end. Called from any thread of the library, also
/// from several at the same time, so it must be thread-safe. It may report itself and replace the
/// sink. It must not throw.
using ReportSink = std::function<void(const std::string& text)>;

/// Replaces the sink and returns the previous one; an empty one means stderr. Thread-safe. A report
/// that began before may still reach the previous sink afterwards.
ReportSink set_report_sink(ReportSink sink);

}  // namespace penstock
