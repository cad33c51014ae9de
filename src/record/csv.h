#pragma once
// Comma-separated values as a format of records.

#include "penstock/csv.h"
#include "record/record_kind.h"

namespace penstock {

/// from_csv: a dict with a value for each column. Throws ConfigError for options that contradict
/// each other; those that name columns are checked when the decoder is made.
RecordKind csv_kind(const CsvOptions& options);

}  // namespace penstock
