#pragma once
// Tables that are loaded in chunks, when their rows are needed: Parquet files by row groups, Arrow
// files by batches, or anything that can return a part of a table.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <penstock/arrow.h>
#include <penstock/dataset.h>

namespace penstock {

/// A part of a table that is loaded as a whole.
struct TableChunk {
  std::uint64_t rows = 0;
  std::size_t file = 0;      // in ChunkedTable::files
  std::uint64_t number = 0;  // in its file, for errors
  std::uint64_t bytes = 0;   // when loaded, about; 0 if not known
};

struct ChunkedTable {
  std::vector<std::string> files;  // their paths, for errors
  std::vector<TableChunk> chunks;  // their rows follow each other
  /// Fills a stream with the rows of chunks[chunk]. Called from threads of the engine, for several
  /// chunks at the same time; may block, and may throw: a std::system_error that may pass is
  /// retried, any other exception fails the rows of the chunk.
  std::function<void(std::uint64_t chunk, ArrowArrayStream& stream)> load;
};

struct TableChunkOptions {
  ArrowOptions table = {.word = "from_arrow_chunks"};  // files are those of the table
  /// Recognizes the data, for states: names, sizes and dates of files, for example. Columns and
  /// rows are recognized anyway.
  std::string identity = {};
  /// Memory for loaded chunks; 0 means an eighth of what is available, from 256 MiB to 4 GiB. At
  /// least one chunk is kept for each thread that uses chunks.
  std::uint64_t chunk_bytes_max = 0;
  std::string chunk_word = "chunk";  // what users call a chunk: "row group"
};

/// The rows of a table, like `from_arrow`. A chunk is loaded when a row of it is needed, by one
/// thread, and kept while there is memory. `schema` is that of every chunk, and is taken over. Rows
/// of a chunk with other columns, or another number of rows, fail. A chunk that could not be loaded
/// is loaded again when its rows are requested the 2nd, 4th, 8th, ... time.
Dataset from_arrow_chunks(ArrowSchema& schema, ChunkedTable table,
                          const TableChunkOptions& options = {});

}  // namespace penstock
