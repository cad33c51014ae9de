#pragma once
// Which columns a CSV file has, and what is read of them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/csv.h"
#include "penstock/spec.h"
#include "record/csv_scanner.h"
#include "record/null_fill.h"
#include "record/record_kind.h"

namespace penstock {

inline CsvFormat csv_format(const CsvOptions& options) {
  return {options.delimiter, options.quote, options.comment};
}

/// A column of the file.
struct CsvColumn {
  static constexpr std::size_t kNotRead = SIZE_MAX;
  std::string name;
  std::size_t field = kNotRead;  // of the sample
  Dtype dtype = Dtype::string;
  NullFill fill = {};
};

/// The names in the first line of `preface`, without a byte order mark, empty lines and comments;
/// nothing if there is no such line. Throws ConfigError if it is damaged.
std::optional<std::vector<std::string>> csv_header(const CsvFormat& format, const std::string& file,
                                                   std::string_view preface);

/// Why two headers differ: "it has 3 columns, FILE has 4"; empty if they do not.
std::string csv_header_difference(const std::vector<std::string>& header,
                                  const std::vector<std::string>& first, const std::string& file);

/// The columns of the file that `first` begins. Throws ConfigError if the options do not fit it.
std::vector<CsvColumn> csv_columns(const CsvOptions& options, const FirstRecords& first);

/// True if the text stands for a missing value.
bool is_missing(const CsvOptions& options, std::string_view text);

}  // namespace penstock
