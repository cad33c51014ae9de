// tested in src/record/jsonl_test.cc
#include "record/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstring>
#include <optional>
#include <utility>

#include "base/digest.h"
#include "base/json.h"
#include "base/printable.h"
#include "penstock/error.h"
#include "record/json_guess.h"
#include "record/json_parse.h"
#include "sample/rows.h"
#include "sample/with_type.h"

namespace penstock {
namespace {

constexpr const char* kWord = "from_jsonl";

/// Adds a field to the object `node`; its path is the rest of that of `spec` from `from` on.
void add_field(JsonNode& node, const FieldSpec& spec, std::size_t from) {
  const std::size_t slash = spec.path.find('/', from);
  const std::string key = spec.path.substr(from, slash - from);
  if (key.empty())
    throw ConfigError(fmt::format("{}: a field cannot be called {}", kWord, excerpt(spec.path)), {},
                      "names are not empty; \"a/b\" is field \"b\" of object \"a\"");
  auto child = std::ranges::find(node.children, key, &JsonNode::key);
  const bool last = slash == std::string::npos;
  if (child == node.children.end()) {
    node.children.push_back({.key = key});
    child = node.children.end() - 1;
    child->spec.path = spec.path.substr(0, slash);
  } else if (last || !child->object()) {
    throw ConfigError(
        fmt::format("{}: two fields are called {}", kWord, excerpt(spec.path.substr(0, slash))));
  }
  if (!last) return add_field(*child, spec, slash + 1);
  child->field = 0;
  child->spec = spec;
}

void check_shape(const FieldSpec& spec) {
  const bool text = is_variable(spec.dtype) && !spec.shape.empty();
  bool open = false;
  for (std::size_t i = 0; i < spec.shape.size(); ++i)
    open = open || spec.shape[i] < kUnknown || (spec.shape[i] == kUnknown && i > 0);
  if (text || open || spec.shape.size() > static_cast<std::size_t>(kJsonDepthMax))
    throw ConfigError(
        fmt::format("{}: the field {} cannot be {}", kWord, excerpt(spec.path), spec.text()), {},
        text ? "lists of text are read as their JSON text, with the shape []"
             : "only the first size of a list may be open");
}

/// Sorts children by key, and numbers the fields in that order. `example` is a record.
Structure finish(JsonNode& node, std::string_view example, std::vector<FieldSpec>& fields) {
  Structure structure;
  if (!node.object()) {
    node.field = fields.size();
    fields.push_back(node.spec);
    return structure;
  }
  structure.kind = Structure::Kind::dict;
  std::ranges::sort(node.children, {}, &JsonNode::key);
  std::vector<std::size_t> places;  // in the example; last if it is not there
  for (JsonNode& child : node.children) {
    structure.children.emplace_back(child.key, finish(child, example, fields));
    const std::string_view value = json_text_at(example, child.spec.path);
    places.push_back(value.empty() ? SIZE_MAX
                                   : static_cast<std::size_t>(value.data() - example.data()));
    node.usual_order.push_back(node.usual_order.size());
  }
  std::ranges::sort(node.usual_order, {},
                    [&](std::size_t child) { return std::pair(places[child], child); });
  return structure;
}

JsonNode* node_at(JsonNode& node, const std::string& path) {
  for (JsonNode& child : node.children) {
    if (child.spec.path == path) return child.object() ? nullptr : &child;
    if (path.starts_with(child.spec.path + "/")) return node_at(child, path);
  }
  return nullptr;
}

std::string_view skip_spaces(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

/// Bytes of the string that begins `text`.
std::size_t string_bytes(std::string_view text) {
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '"') return at + 1;
    if (text[at] == '\\') ++at;
  }
  return text.size();
}

/// Bytes of the string, list, object, number or word that begins `text`.
std::size_t value_bytes_of(std::string_view text) {
  if (text.starts_with('"')) return string_bytes(text);
  if (!text.starts_with('{') && !text.starts_with('['))
    return std::min(text.find_first_of(",]} \t\r\n"), text.size());
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      at += string_bytes(text.substr(at));
      continue;
    }
    if (text[at] == '{' || text[at] == '[') ++depth;
    if ((text[at] == '}' || text[at] == ']') && --depth == 0) return at + 1;
    ++at;
  }
  return text.size();
}

bool is_key(std::string_view quoted, std::string_view key) {
  if (quoted.find('\\') == std::string_view::npos)
    return quoted.size() == key.size() + 2 && quoted.substr(1, key.size()) == key;
  const auto text = parse_json(quoted);
  return text && text->is_string() && text->get_ref<const std::string&>() == key;
}

template <typename T>
NumberFit put_as(const JsonNumber& number, std::byte* to) {
  T value{};
  if constexpr (std::same_as<T, NoType> || std::same_as<T, bool>) {
    return NumberFit::not_whole;
  } else if constexpr (std::integral<T>) {
    if (number.kind == JsonNumber::Kind::real) return NumberFit::not_whole;
    const bool large = number.kind == JsonNumber::Kind::large;
    if (large ? !std::in_range<T>(number.large) : !std::in_range<T>(number.whole))
      return NumberFit::out_of_range;
    value = large ? static_cast<T>(number.large) : static_cast<T>(number.whole);
  } else {
    double real = number.real;
    if (number.kind == JsonNumber::Kind::whole) real = static_cast<double>(number.whole);
    if (number.kind == JsonNumber::Kind::large) real = static_cast<double>(number.large);
    if constexpr (std::same_as<T, double>) {
      value = real;
    } else {
      value = T(static_cast<float>(real));
      if (std::isinf(static_cast<float>(value))) return NumberFit::out_of_range;
    }
  }
  std::memcpy(to, &value, sizeof value);
  return NumberFit::good;
}

}  // namespace

std::size_t JsonNode::find(std::string_view wanted, std::size_t& hint) const {
  if (hint < usual_order.size() && children[usual_order[hint]].key == wanted)
    return usual_order[hint++];
  const auto child = std::ranges::lower_bound(
      children, wanted, {}, [](const JsonNode& node) { return std::string_view(node.key); });
  if (child == children.end() || child->key != wanted) return children.size();
  const auto number = static_cast<std::size_t>(child - children.begin());
  hint = static_cast<std::size_t>(std::ranges::find(usual_order, number) - usual_order.begin()) + 1;
  return number;
}

void JsonFields::identify(Digest& digest) const {
  const auto add = [&digest](const auto& self, const JsonNode& node) -> void {
    digest.add(node.key);
    digest.add(node.children.size());
    if (!node.object()) digest.add(node.spec.text());
    node.fill.identify(digest);
    for (const JsonNode& child : node.children) self(self, child);
  };
  add(add, root);
}

JsonFields json_fields(const JsonLinesOptions& options, const FirstRecords& first) {
  JsonFields result;
  std::vector<FieldSpec> fields = options.fields;
  if (fields.empty()) {
    GuessedFields guessed = guess_json_fields(options, first);
    fields = std::move(guessed.fields);
    result.left_out = guessed.left_out_text();
  }
  for (const FieldSpec& field : fields) {
    check_shape(field);
    add_field(result.root, field, 0);
  }
  for (const auto& [path, value] : options.nulls) {
    JsonNode* const node = node_at(result.root, path);
    if (node == nullptr)
      throw ConfigError(
          fmt::format("{}: nulls names the field {}, which is not read", kWord, excerpt(path)), {},
          "name a field that is no object, as in \"a\" or \"a/b\"");
    node->fill = null_fill(kWord, node->spec, value);
  }
  result.spec.structure =
      finish(result.root, first.records.empty() ? "" : first.records.front(), result.spec.fields);
  return result;
}

NumberFit put_number(const JsonNumber& number, Dtype dtype, std::byte* to) {
  return with_type(dtype, [&]<typename T>(T) { return put_as<T>(number, to); });
}

std::optional<std::size_t> json_list_bytes(const Shape& shape, Dtype dtype,
                                           std::string_view record) {
  std::size_t values = 1;
  for (const std::int64_t size : shape)
    if (__builtin_mul_overflow(values, static_cast<std::size_t>(size), &values))
      return std::nullopt;
  if (values > record.size()) return std::nullopt;  // each is at least one byte of text
  return values * dtype_size(dtype);
}

const JsonNode* put_null(const JsonNode& node, const BlockView& out, std::size_t row) {
  for (const JsonNode& child : node.children)
    if (const JsonNode* const without = put_null(child, out, row)) return without;
  if (node.object()) return nullptr;
  if (!node.fill.filled) return &node;
  const Column& column = out.columns[node.field];
  if (is_variable(node.spec.dtype)) {
    column.tensors[row] = Tensor::bytes(node.fill.text, node.spec.dtype);
  } else if (!column.dense()) {
    Shape empty = node.spec.shape;
    empty.front() = 0;
    column.tensors[row] = Tensor::copy(node.spec.dtype, std::move(empty), {});
  } else {
    const std::size_t unit = node.fill.number.size();
    for (std::size_t at = 0; at < column.row_bytes; at += unit)
      std::memcpy(column.data + row * column.row_bytes + at, node.fill.number.data(), unit);
  }
  return nullptr;
}

std::string_view json_text_at(std::string_view object, std::string_view path) {
  const std::string_view key = path.substr(0, path.find('/'));
  std::string_view rest = skip_spaces(object);
  if (!rest.starts_with('{')) return {};
  for (rest = skip_spaces(rest.substr(1)); rest.starts_with('"');) {
    const std::string_view quoted = rest.substr(0, value_bytes_of(rest));
    rest = skip_spaces(rest.substr(quoted.size()));
    rest = skip_spaces(rest.substr(std::min<std::size_t>(1, rest.size())));  // the colon
    const std::string_view value = rest.substr(0, value_bytes_of(rest));
    if (is_key(quoted, key))
      return key.size() == path.size() ? value : json_text_at(value, path.substr(key.size() + 1));
    rest = skip_spaces(rest.substr(value.size()));
    rest = skip_spaces(rest.substr(std::min<std::size_t>(1, rest.size())));  // the comma
  }
  return {};
}

}  // namespace penstock
