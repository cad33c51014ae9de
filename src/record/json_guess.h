#pragma once
// Which fields the objects of JSON lines have.

#include <string>
#include <vector>

#include "penstock/json_lines.h"
#include "penstock/spec.h"
#include "record/record_kind.h"

namespace penstock {

struct GuessedFields {
  std::vector<FieldSpec> fields;
  std::vector<std::string> left_out;  // "\"tags\" (lists of text)"
  /// The first of them.
  [[nodiscard]] std::string left_out_text() const;
};

/// Throws ConfigError if no record can be read, or none has a field that can be inferred.
GuessedFields guess_json_fields(const JsonLinesOptions& options, const FirstRecords& first);

}  // namespace penstock
