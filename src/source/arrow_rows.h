#pragma once
// Rows of Arrow tables, read in place through the C data interface.

#include <memory>

#include "penstock/arrow.h"
#include "source/source.h"

namespace penstock {

/// Reads all batches of `stream` and releases it.
std::shared_ptr<const Source> make_arrow_rows(ArrowArrayStream& stream,
                                              const ArrowOptions& options);

/// Takes over the schema and the batch.
std::shared_ptr<const Source> make_arrow_rows(ArrowSchema& schema, ArrowArray& batch,
                                              const ArrowOptions& options);

}  // namespace penstock
