#pragma once
// Files of comma-separated values.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <penstock/arrow.h>
#include <penstock/dataset.h>
#include <penstock/record_files.h>

namespace penstock {

struct CsvOptions {
  char delimiter = ',';  // '\t' for TSV
  /// Opens a field at its start; "" inside is one quote. '\0': none.
  char quote = '"';
  /// Lines that begin with it are skipped. '\0': none.
  char comment = '\0';
  /// The first line has the names. Without, columns are called "column0", "column1", ...
  bool header = true;
  /// Names of all columns, in place of those.
  std::vector<std::string> names = {};
  /// The columns to read; all if empty. Others are not parsed.
  std::vector<std::string> columns = {};
  /// By column. The types of others are inferred from the first records: boolean for true and
  /// false, i64 (u64 if one is larger) for whole numbers, `floats` for other numbers, else string.
  std::map<std::string, Dtype> types = {};
  /// f32, which models compute with and which takes half of the memory, or f64. Numbers are rounded
  /// to f64 first, as NumPy does.
  Dtype floats = Dtype::f32;
  /// What missing values become, by column. A sample with a missing value in another column fails.
  std::map<std::string, NullValue> nulls = {};
  /// Which texts, without the spaces around them, are missing values of numbers and booleans. Those
  /// of text columns are values, unless `nulls` names the column and they are not quoted.
  std::vector<std::string> missing = {"", "NA", "NaN", "nan", "null", "NULL"};
  /// From how many records types are inferred.
  std::uint64_t infer_records = 1000;
  RecordFileOptions files = {};
};

/// The records of CSV files (RFC 4180, in UTF-8), as a dict with a value for each column. All files
/// have the same header. Empty lines are skipped. A record fails if it has another number of
/// fields, a broken quote, a missing value, or a value that is not of its column's type. Throws
/// ConfigError for options that do not fit the files, IoError if one cannot be read.
Dataset from_csv(const std::vector<std::string>& paths, const CsvOptions& options = {});

}  // namespace penstock
