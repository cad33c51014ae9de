#include "store/rows_header.h"

#include <fmt/format.h>

#include <utility>

#include "base/crc32c.h"
#include "base/digest.h"
#include "base/json.h"
#include "penstock/error.h"

namespace penstock {
namespace {

constexpr int kFormat = 1;

/// Leaves take their fields from the spec in order.
Json json_of(const Structure& node, const ElementSpec& spec, std::size_t& field) {
  if (node.kind == Structure::Kind::leaf) {
    const FieldSpec& leaf = spec.fields.at(field++);
    return {{"dtype", dtype_name(leaf.dtype)}, {"shape", leaf.shape}};
  }
  Json children = Json::array();
  for (const auto& [name, child] : node.children) {
    Json below = json_of(child, spec, field);
    children.push_back(Json::array({name, std::move(below)}));
  }
  return {{node.kind == Structure::Kind::dict ? "dict" : "tuple", std::move(children)}};
}

Json json_of(const ElementSpec& spec) {
  if (!spec.known) return nullptr;
  std::size_t field = 0;
  return json_of(spec.structure, spec, field);
}

Dtype dtype_of(const std::string& name) {
  for (auto dtype = Dtype::boolean; dtype <= Dtype::string;
       dtype = static_cast<Dtype>(static_cast<unsigned>(dtype) + 1))
    if (dtype_name(dtype) == name) return dtype;
  throw std::out_of_range(name);
}

Structure structure_of(const Json& json, std::vector<FieldSpec>& fields) {
  Structure node;
  if (json.contains("dtype")) {
    FieldSpec& field = fields.emplace_back();
    field.dtype = dtype_of(json.at("dtype").get<std::string>());
    field.shape = whole_numbers<std::int64_t>(json.at("shape"));
    for (const std::int64_t size : field.shape)
      if (size < kUnknown) throw std::out_of_range("shape");
    if (is_variable(field.dtype) && !field.shape.empty()) throw std::out_of_range("shape");
    return node;
  }
  const bool dict = json.contains("dict");
  node.kind = dict ? Structure::Kind::dict : Structure::Kind::tuple;
  for (const Json& child : json.at(dict ? "dict" : "tuple"))
    node.children.emplace_back(child.at(0).get<std::string>(), structure_of(child.at(1), fields));
  return node;
}

/// True if a row of these sizes can be described at all.
bool has_sane_sizes(const ElementSpec& spec) {
  std::size_t bytes = 0;
  for (const FieldSpec& field : spec.fields) {
    std::size_t own = std::max<std::size_t>(1, dtype_size(field.dtype));
    for (const std::int64_t size : field.shape)
      if (size > 0 && __builtin_mul_overflow(own, static_cast<std::size_t>(size), &own))
        return false;
    if (__builtin_add_overflow(bytes, own, &bytes)) return false;
  }
  return bytes <= std::size_t{1} << 40;
}

ElementSpec spec_of(const Json& json) {
  if (json.is_null()) return ElementSpec::unknown();
  ElementSpec spec;
  spec.structure = structure_of(json, spec.fields);
  const auto paths = spec.structure.paths();
  for (std::size_t i = 0; i < paths.size(); ++i) spec.fields[i].path = paths[i];
  if (!has_sane_sizes(spec)) throw std::out_of_range("sizes");
  return spec;
}

std::uint32_t check_of(const Json& fields) {
  return crc32c(fields.dump());
}

}  // namespace

std::uint64_t RowsData::number() const {
  Digest digest;
  digest.add(digests.order);
  digest.add(digests.values);
  digest.add(spec.text());
  digest.add(place);
  return digest.value();
}

std::uint64_t RowsHeader::data_number() const {
  Digest digest;
  digest.add(data.number());
  digest.add(build);
  return digest.value();
}

std::string RowsHeader::text() const {
  Json fields{{"penstock", "rows"},
              {"format", kFormat},
              {"version", version},
              {"order", data.digests.order},
              {"values", data.digests.values},
              {"place", data.place},
              {"spec", json_of(data.spec)},
              {"rows", rows ? Json(*rows) : Json()},
              {"complete", complete},
              {"build", build}};
  try {
    fields["check"] = check_of(fields);
    return fields.dump(2) + "\n";
  } catch (const Json::exception&) {
    throw ConfigError("the name of a field is not UTF-8 text and cannot be stored", {},
                      "rename it by a map()");
  }
}

Result<RowsHeader> parse_rows_header(std::string_view text) {
  const Failure damaged{"it is damaged"};
  auto parsed = parse_json(text);
  if (!parsed || !parsed->is_object()) return damaged;
  try {
    Json& fields = *parsed;
    if (!fields.contains("penstock") || fields["penstock"] != "rows")
      return Failure{"penstock did not write it"};
    if (const auto format = whole_number<std::int64_t>(fields.at("format")); format != kFormat)
      return Failure{fmt::format("it has format {}, this version knows {}", format, kFormat)};
    const auto check = whole_number<std::uint32_t>(fields.at("check"));
    fields.erase("check");
    if (check != check_of(fields)) return damaged;
    RowsHeader header;
    header.version = fields.at("version").get<std::string>();
    header.data.digests = {fields.at("order").get<std::string>(),
                           fields.at("values").get<std::string>()};
    header.data.place = fields.at("place").get<std::string>();
    header.data.spec = spec_of(fields.at("spec"));
    if (!fields.at("rows").is_null()) header.rows = whole_number<std::uint64_t>(fields.at("rows"));
    header.complete = fields.at("complete").get<bool>();
    header.build = whole_number<std::uint64_t>(fields.at("build"));
    return header;
  } catch (const Json::exception&) {
    return damaged;
  } catch (const std::out_of_range&) {
    return damaged;
  }
}

}  // namespace penstock
