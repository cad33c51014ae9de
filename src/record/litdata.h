#pragma once
// Chunks of LitData, as versions 0.2.17 to 0.2.76 of the library write them. Numbers are
// little-endian:
//
//   u32 items, u32 offsets[items + 1] from the start of the file, items
//
// An item has the sizes (u32) of its leaves, then the bytes of all of them. A leaf is a value of a
// nested dict, tuple or list. Chunks of tokens have items of one leaf, without its size.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/litdata.h"
#include "penstock/sample.h"
#include "record/record_kind.h"

namespace penstock {

struct LitDataChunk {
  std::string name;         // relative to the folder of the index
  std::uint64_t bytes = 0;  // of the file; older versions: of its items
  std::uint64_t items = 0;
  std::uint64_t tokens = 0;  // of all items, in a chunk of tokens
};

struct LitDataIndex {
  Structure structure;                   // the children of dicts in the order of the items
  std::vector<std::string> serializers;  // of the leaves
  bool tokens = false;                   // items have no sizes
  std::string compression = {};          // "zstd", or nothing
  bool items_compressed = false;         // each item for itself
  std::vector<LitDataChunk> chunks;
};

/// Throws ConfigError, which names `file`, if the text is no index, or one of chunks that are not
/// read at all: encrypted ones, tables of Parquet.
LitDataIndex parse_litdata_index(std::string_view text, const std::string& file);

/// Throws ConfigError for options that do not fit the index.
RecordKind litdata_kind(const LitDataIndex& index, const LitDataOptions& options);

/// Bytes of a token; 0 if items are not known to be tokens.
std::uint64_t litdata_token_bytes(const LitDataIndex& index);

/// Its failure is the damage of ScanEnd. With `window_bytes` the records are the parts of that size
/// of all items, which follow each other.
std::unique_ptr<RecordScanner> make_litdata_scanner(std::uint64_t window_bytes = 0);

}  // namespace penstock
