#pragma once
// The only way in which the library prints: reports go to the sink of penstock/report_sink.h.

#include <string>

namespace penstock {

/// Thread-safe.
void report(const std::string& text);

}  // namespace penstock
