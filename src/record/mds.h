#pragma once
// MDS shards of MosaicML Streaming, version 2, as version 0.13 of the library writes them. Numbers
// are little-endian:
//
//   u32 samples, u32 offsets[samples + 1] from the start of the file, the columns once more,
//   samples
//
// A sample has the sizes (u32) of its columns of varying size, then the bytes of all columns.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/mds.h"
#include "record/record_kind.h"

namespace penstock {

struct MdsColumn {
  std::string name;
  std::string encoding;
  std::optional<std::uint64_t> bytes;  // nullopt if it varies
  bool operator==(const MdsColumn&) const = default;
};

struct MdsShard {
  std::string name;  // relative to the folder of the index
  std::uint64_t bytes = 0;
  std::uint64_t samples = 0;
  std::string compressed_name = {};  // of another form of it, if there is one
};

struct MdsIndex {
  std::vector<MdsColumn> columns;  // as they follow each other in a sample
  std::vector<MdsShard> shards;
};

/// Throws ConfigError, which names `file`, if the text is no index, and if shards differ in their
/// columns or are not below the folder.
MdsIndex parse_mds_index(std::string_view text, const std::string& file);

/// Throws ConfigError for options that do not fit the columns.
RecordKind mds_kind(const MdsIndex& index, const MdsOptions& options);

/// Its failure is the damage of ScanEnd.
std::unique_ptr<RecordScanner> make_mds_scanner();

}  // namespace penstock
