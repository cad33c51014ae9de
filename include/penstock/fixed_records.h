#pragma once
// Files of records that all have the same number of bytes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <penstock/dataset.h>

namespace penstock {

struct FixedRecordOptions {
  /// Bytes before the first record and after the last one of each file.
  std::uint64_t header_bytes = 0;
  std::uint64_t footer_bytes = 0;
  /// A file whose size does not fit a whole number of records: "refuse" it, or "drop" the rest.
  std::string partial = "refuse";
  /// The values of a record, the low byte first, row by row; a record then has exactly their bytes.
  /// Without a dtype a record is one field of bytes.
  std::optional<Dtype> dtype = {};
  Shape shape = {};
};

/// The records of files, in their order: each of `paths` is a file, a pattern as for `list_files`,
/// or names with braces, as in "part-{000..127}.bin". Only sizes are looked at here; records are
/// read where they are. Throws ConfigError if no file matches, or if a size does not fit.
Dataset from_records(const std::vector<std::string>& paths, std::uint64_t record_bytes,
                     const FixedRecordOptions& options = {});

}  // namespace penstock
