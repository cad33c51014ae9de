// tested in src/source/arrow_rows_test.cc
#include "penstock/arrow.h"

#include "penstock/table_chunks.h"
#include "source/arrow_rows.h"
#include "source/chunked_rows.h"
#include "source/mapped_file.h"
#include "verb/mapped_bytes.h"
#include "verb/source.h"

namespace penstock {

Dataset from_arrow(ArrowArrayStream& stream, const ArrowOptions& options) {
  SourceOptions source;
  source.name = options.name;
  return from_source(make_arrow_rows(stream, options), source);
}

Dataset from_arrow(ArrowSchema& schema, ArrowArray& batch, const ArrowOptions& options) {
  SourceOptions source;
  source.name = options.name;
  return from_source(make_arrow_rows(schema, batch, options), source);
}

Dataset from_arrow_chunks(ArrowSchema& schema, ChunkedTable table,
                          const TableChunkOptions& options) {
  SourceOptions source;
  source.name = options.table.name;
  return from_source(make_chunked_rows(schema, std::move(table), options), source);
}

Tensor mapped_bytes(const std::string& path) {
  return map_file(path, Dtype::u8);
}

}  // namespace penstock
