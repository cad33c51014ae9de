#pragma once
// What was recorded, without its events, as JSON: the last part of a trace file.

#include "base/json_fwd.h"
#include "trace/recording.h"

namespace penstock {

inline constexpr int kTraceFormat = 1;

Json json_of(const trace::Recording& recording);
/// Throws Json::exception if a value has another type than it should, and ConfigError for another
/// format. Missing values are 0 or empty.
trace::Recording recording_of(const Json& json);

}  // namespace penstock
