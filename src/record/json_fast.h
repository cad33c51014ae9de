#pragma once
// JSON records by simdjson, where the build has it.

#include <string_view>

#include "penstock/block.h"
#include "record/json_fields.h"
#include "sample/scratch.h"

namespace penstock {

/// Writes the fields of `record` to `row`. Returns false for what it does not accept, or if there
/// is no simdjson: then json_decode.h decides, which accepts the same and more, and says why not.
bool decode_json_fast(const JsonFields& fields, std::string_view record, const BlockView& out,
                      std::size_t row, Scratch& scratch);

}  // namespace penstock
