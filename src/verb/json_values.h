#pragma once
// Arguments of datasets of files as JSON: types, fields, and what nulls become.

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "penstock/arrow.h"
#include "penstock/spec.h"

namespace penstock {

/// Throws ConfigError for other names.
Dtype parse_dtype_name(const std::string& name);

Json json_of_fields(const std::vector<FieldSpec>& fields);
/// Throws Json::exception or ConfigError for other values.
std::vector<FieldSpec> parse_fields(const Json& json);

/// A number, a text, or [] for none; numbers that JSON does not have are {"number": "nan"}.
Json json_of_nulls(const std::map<std::string, NullValue>& nulls);
std::map<std::string, NullValue> parse_nulls(const Json& json);

}  // namespace penstock
