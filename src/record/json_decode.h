#pragma once
// JSON records by the plain parser, which says what is wrong with them.

#include <string_view>

#include "penstock/block.h"
#include "penstock/result.h"
#include "record/json_fields.h"
#include "sample/scratch.h"

namespace penstock {

/// Writes the fields of `record` to `row`.
Result<void> decode_json(const JsonFields& fields, std::string_view record, const BlockView& out,
                         std::size_t row, Scratch& scratch);

}  // namespace penstock
