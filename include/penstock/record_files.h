#pragma once
// Files of records: what all formats have in common.

#include <cstdint>
#include <functional>
#include <string>

namespace penstock {

/// How the files of records are found and read. Each path is a file, a pattern as for `list_files`,
/// or names with braces, as in "shard-{000..127}.tar". Files follow each other in this order, those
/// of a pattern by name.
///
/// Each file is read through once to find where its records begin; this index is stored, and used
/// again while size, modification time and content agree. Files compressed with gzip, zlib or zstd
/// cannot be read from the middle: they are streams.
struct RecordFileOptions {
  /// Where indexes are stored: "beside" the files, as hidden files ".NAME.pstkidx"; "memory", not
  /// stored; or a folder. Where nothing can be written they stay in memory.
  std::string index = "beside";
  /// "auto", by the first bytes of each file; "none", "gzip", "zlib" or "zstd".
  std::string compression = "auto";
  /// A longer record fails.
  std::uint64_t record_bytes_max = std::uint64_t{1} << 30;
  /// Called about every 50 ms while indexes are built, by the thread that defines the dataset, with
  /// the bytes examined so far and those of all files without an index. An exception ends the
  /// building and is rethrown.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};
};

}  // namespace penstock
