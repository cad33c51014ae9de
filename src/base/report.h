#pragma once
// The only way the library prints: reports go to a sink, stderr by default.

#include <string>

namespace penstock {

/// Thread-safe.
void report(const std::string& text);

}  // namespace penstock
