#pragma once
// The fields of a record of a CSV file.

#include <string>
#include <string_view>
#include <vector>

#include "record/csv_scanner.h"
#include "sample/scratch.h"

namespace penstock {

/// One field, as it is in the file.
struct CsvField {
  std::string_view text;        // without the quotes around it
  const char* after = nullptr;  // the delimiter or the end of the line after it
  bool quoted = false;
  bool doubled = false;          // has two quotes that stand for one
  const char* damage = nullptr;  // what is wrong with its quotes

  /// The text that it stands for; in `scratch` if it differs.
  [[nodiscard]] std::string_view value(Scratch& scratch) const;
};

/// The end of a field that ends at `at`: the delimiter, the '\n', or `end`; null if it goes on.
inline const char* csv_field_end(const CsvFormat& format, const char* at, const char* end) {
  if (at == end || *at == format.delimiter || *at == '\n') return at;
  const bool line_end = *at == '\r' && (at + 1 == end || at[1] == '\n');
  return line_end ? at + 1 : nullptr;
}

/// The field that begins at `at`, in a record that ends at or before `end`.
CsvField cut_csv_field(const CsvFormat& format, const char* at, const char* end);

/// Where the field ends that begins at `at`, as `after`; null if its quotes are broken.
const char* skip_csv_field(const CsvFormat& format, const char* at, const char* end);

/// The values of all fields of a record; `damage` as in CsvField.
struct CsvRow {
  std::vector<std::string> values;
  std::vector<bool> quoted;
  const char* damage = nullptr;
};
CsvRow cut_csv_record(const CsvFormat& format, std::string_view record);

}  // namespace penstock
