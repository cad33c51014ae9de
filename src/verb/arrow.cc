// tested in src/source/arrow_rows_test.cc
#include "penstock/arrow.h"

#include "source/arrow_rows.h"
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

}  // namespace penstock
