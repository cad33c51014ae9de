#pragma once
// JSON lines as a format of records.

#include "penstock/json_lines.h"
#include "record/record_kind.h"

namespace penstock {

/// from_jsonl: a dict, or strings with `raw`. Throws ConfigError for options that contradict each
/// other.
RecordKind jsonl_kind(const JsonLinesOptions& options);

}  // namespace penstock
