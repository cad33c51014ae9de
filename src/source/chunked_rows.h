#pragma once
// Rows of tables that are loaded in chunks.

#include <memory>

#include "penstock/table_chunks.h"
#include "source/source.h"

namespace penstock {

/// Takes over the schema.
std::shared_ptr<const Source> make_chunked_rows(ArrowSchema& schema, ChunkedTable table,
                                                const TableChunkOptions& options);

}  // namespace penstock
