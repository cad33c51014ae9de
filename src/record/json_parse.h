#pragma once
// JSON that says where it is wrong. Objects with a repeated key are accepted, except for those that
// are read.

#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "penstock/result.h"
#include "record/json_fields.h"

namespace penstock {

/// The object in `record`. Fails for anything else, with the position; also if a key that `root`
/// reads comes twice. Without `root` no key is read.
Result<Json> parse_json_record(std::string_view record, const JsonNode* root);

/// "a list", "text", "a number".
const char* json_type_word(const Json& value);

}  // namespace penstock
