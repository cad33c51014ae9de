// tested in src/record/jsonl_test.cc
#include "record/json_decode.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/json.h"
#include "record/json_parse.h"
#include "sample/rows.h"

namespace penstock {
namespace {

JsonNumber number_of(const Json& value) {
  if (value.is_number_float()) return {JsonNumber::Kind::real, 0, 0, value.get<double>()};
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (!std::in_range<std::int64_t>(number)) return {JsonNumber::Kind::large, 0, number};
  }
  return {JsonNumber::Kind::whole, value.get<std::int64_t>()};
}

/// One record.
class PlainDecoder {
 public:
  PlainDecoder(std::string_view record, const BlockView& out, std::size_t row, Scratch& scratch)
      : record_(record), out_(out), row_(row), scratch_(scratch) {}

  Result<void> put_object(const JsonNode& node, const Json& object) {
    for (const JsonNode& child : node.children) {
      const auto value = object.find(child.key);
      const bool there = value != object.end();
      if (!there || value->is_null()) {
        if (const JsonNode* const without = put_null(child, out_, row_))
          return missing(*without, there && without == &child);
      } else if (auto done = put(child, *value); !done) {
        return done;
      }
    }
    return {};
  }

 private:
  static Failure missing(const JsonNode& node, bool null) {
    return {fmt::format("field {}: {}", excerpt(node.spec.path),
                        null ? "the value is null" : "the record does not have it"),
            {},
            "name what such values become, as in nulls={...}, name the fields to read without it, "
            "or skip errors"};
  }
  static Failure wrong(const JsonNode& node, const std::string& what) {
    return {fmt::format("field {} ({}): {}", excerpt(node.spec.path),
                        node.object() ? "an object" : node.spec.text(), what),
            {},
            "name the fields to read, with types that fit all records, or skip errors"};
  }
  static Failure of_type(const JsonNode& node, const Json& value) {
    return wrong(node, fmt::format("the value is {}", json_type_word(value)));
  }

  Result<void> put(const JsonNode& node, const Json& value) {
    if (node.object()) return value.is_object() ? put_object(node, value) : of_type(node, value);
    const Column& column = out_.columns[node.field];
    const Dtype dtype = node.spec.dtype;
    if (is_variable(dtype)) {
      const std::string_view text = value.is_string()
                                        ? std::string_view(value.get_ref<const std::string&>())
                                        : json_text_at(record_, node.spec.path);
      column.tensors[row_] = Tensor::bytes(text, dtype);
      return {};
    }
    if (column.dense()) {
      std::byte* to = column.data + row_ * column.row_bytes;
      return put_values(node, value, 0, to);
    }
    if (!value.is_array()) return of_type(node, value);
    Shape shape = node.spec.shape;
    shape.front() = static_cast<std::int64_t>(value.size());
    const auto bytes = json_list_bytes(shape, dtype, record_);
    if (!bytes) return wrong(node, "its lists have other sizes");
    std::byte* const values = scratch_.allocate(*bytes);
    std::byte* to = values;
    auto done = put_values(node, value, 0, to);
    if (done) column.tensors[row_] = Tensor::copy(dtype, std::move(shape), {values, *bytes});
    return done;
  }

  /// Writes a number or a list of them, of the sizes from `depth` on, and moves `to`.
  Result<void> put_values(const JsonNode& node, const Json& value, std::size_t depth,
                          std::byte*& to) {
    if (depth == node.spec.shape.size()) return put_one(node, value, to);
    if (!value.is_array()) return of_type(node, value);
    const std::int64_t size = node.spec.shape[depth];
    if (size != kUnknown && std::cmp_not_equal(size, value.size()))
      return wrong(node, fmt::format("a list has {} items", value.size()));
    for (const Json& item : value)
      if (auto done = put_values(node, item, depth + 1, to); !done) return done;
    return {};
  }

  Result<void> put_one(const JsonNode& node, const Json& value, std::byte*& to) {
    const Dtype dtype = node.spec.dtype;
    if (value.is_null()) {
      if (node.fill.number.empty()) return wrong(node, "there is a null in a list");
      std::memcpy(to, node.fill.number.data(), node.fill.number.size());
    } else if (value.is_boolean() && dtype == Dtype::boolean) {
      const bool flag = value.get<bool>();
      std::memcpy(to, &flag, sizeof flag);
    } else if (value.is_number() && dtype != Dtype::boolean) {
      const NumberFit fit = put_number(number_of(value), dtype, to);
      if (fit != NumberFit::good)
        return wrong(node, fmt::format("{} is {}", value.dump(),
                                       fit == NumberFit::not_whole ? "no whole number"
                                                                   : "out of its range"));
    } else {
      return of_type(node, value);
    }
    to += dtype_size(dtype);
    return {};
  }

  const std::string_view record_;
  const BlockView& out_;
  const std::size_t row_;
  Scratch& scratch_;
};

}  // namespace

Result<void> decode_json(const JsonFields& fields, std::string_view record, const BlockView& out,
                         std::size_t row, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  auto json = parse_json_record(record, &fields.root);
  if (!json) return std::move(json.failure());
  return PlainDecoder(record, out, row, scratch).put_object(fields.root, *json);
}

}  // namespace penstock
