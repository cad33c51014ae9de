#include "verb/json_values.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/printable.h"
#include "penstock/error.h"

namespace penstock {
namespace {

Json json_of_number(double value) {
  if (std::isfinite(value)) return value;
  return {{"number", std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"}};
}

NullValue parse_null(const Json& json) {
  if (json.is_array()) return {};
  if (json.is_string()) return json.get<std::string>();
  if (json.is_number()) return json.get<double>();
  const auto name = json.at("number").get<std::string>();
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  return name == "-inf" ? -infinity : infinity;
}

}  // namespace

Dtype parse_dtype_name(const std::string& name) {
  for (auto dtype = Dtype::boolean; dtype <= Dtype::string;
       dtype = static_cast<Dtype>(static_cast<int>(dtype) + 1))
    if (name == dtype_name(dtype)) return dtype;
  throw ConfigError(fmt::format("there is no type \"{}\"", printable(name)));
}

Json json_of_fields(const std::vector<FieldSpec>& fields) {
  Json json = Json::array();
  for (const FieldSpec& field : fields)
    json.push_back({{"path", field.path},
                    {"dtype", std::string(dtype_name(field.dtype))},
                    {"shape", field.shape}});
  return json;
}

std::vector<FieldSpec> parse_fields(const Json& json) {
  std::vector<FieldSpec> fields;
  for (const Json& field : json)
    fields.push_back({field.at("path").get<std::string>(),
                      parse_dtype_name(field.at("dtype").get<std::string>()),
                      whole_numbers<std::int64_t>(field.at("shape"))});
  return fields;
}

Json json_of_nulls(const std::map<std::string, NullValue>& nulls) {
  Json json = Json::object();
  for (const auto& [path, value] : nulls) {
    if (const auto* const number = std::get_if<double>(&value)) {
      json[path] = json_of_number(*number);
    } else if (const auto* const text = std::get_if<std::string>(&value)) {
      json[path] = *text;
    } else {
      json[path] = Json::array();
    }
  }
  return json;
}

std::map<std::string, NullValue> parse_nulls(const Json& json) {
  std::map<std::string, NullValue> nulls;
  for (const auto& [path, value] : json.items()) nulls[path] = parse_null(value);
  return nulls;
}

}  // namespace penstock
