#pragma once
// Files of JSON lines: one JSON object per line.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <penstock/arrow.h>
#include <penstock/dataset.h>
#include <penstock/record_files.h>
#include <penstock/spec.h>

namespace penstock {

struct JsonLinesOptions {
  /// The fields to read; "a/b" is field "b" of object "a". A string field of another JSON type is
  /// its JSON text. If empty, fields are inferred from the first records: booleans, i64 (u64 if one
  /// is larger) for whole numbers, `floats` for others, strings, lists of numbers (of any length)
  /// and lists of these of equal sizes, and objects as nested fields. Other values are left out,
  /// which is reported.
  std::vector<FieldSpec> fields = {};
  /// f32, which models compute with and which takes half of the memory, or f64. Numbers are rounded
  /// to f64 first, as NumPy does.
  Dtype floats = Dtype::f32;
  /// What null and missing keys become, by field. A sample with such a value in another field
  /// fails. The number of a list is for nulls in it.
  std::map<std::string, NullValue> nulls = {};
  /// Each line as a string, not parsed.
  bool raw = false;
  /// From how many records fields are inferred.
  std::uint64_t infer_records = 100;
  RecordFileOptions files = {};
};

/// The objects of files of JSON lines, as a dict of their fields; other keys are ignored. Blank
/// lines are skipped. A record fails if it is no JSON object, repeats a key that is read, nests
/// deeper than 64, or has no value or one of another type for a field. Throws ConfigError for
/// options that do not fit the files, IoError if one cannot be read.
Dataset from_jsonl(const std::vector<std::string>& paths, const JsonLinesOptions& options = {});

}  // namespace penstock
