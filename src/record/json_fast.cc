// tested in src/record/jsonl_test.cc
#include "record/json_fast.h"

#ifdef PENSTOCK_SIMDJSON
#include <simdjson.h>

#include <cstring>

#include "base/check.h"
#include "sample/rows.h"

namespace penstock {
namespace {

namespace dom = simdjson::dom;

/// A parser needs about 14 times the memory of the largest record it has seen.
constexpr std::size_t kKeptBytesMax = std::size_t{1} << 20;

class FastDecoder {
 public:
  FastDecoder(std::string_view record, const BlockView& out, std::size_t row, Scratch& scratch)
      : record_(record), out_(out), row_(row), scratch_(scratch) {}

  bool put_object(const JsonNode& node, dom::object object) {
    const std::size_t count = node.children.size();
    auto* const seen = scratch_.array<bool>(count);
    std::fill_n(seen, count, false);
    std::size_t hint = 0;
    std::size_t found = 0;
    for (const auto [key, value] : object) {
      const std::size_t child = node.find(key, hint);
      if (child == count) continue;
      if (seen[child]) return false;
      seen[child] = true;
      ++found;
      if (!put(node.children[child], value)) return false;
    }
    for (std::size_t i = 0; found < count && i < count; ++i)
      if (!seen[i] && put_null(node.children[i], out_, row_) != nullptr) return false;
    return true;
  }

 private:
  bool put(const JsonNode& node, dom::element value) {
    if (value.is_null()) return put_null(node, out_, row_) == nullptr;
    if (node.object()) {
      dom::object object;
      return value.get(object) == simdjson::SUCCESS && put_object(node, object);
    }
    const Column& column = out_.columns[node.field];
    const Dtype dtype = node.spec.dtype;
    if (is_variable(dtype)) {
      std::string_view text;
      if (value.get(text) != simdjson::SUCCESS) text = json_text_at(record_, node.spec.path);
      column.tensors[row_] = Tensor::bytes(text, dtype);
      return true;
    }
    if (column.dense()) {
      std::byte* to = column.data + row_ * column.row_bytes;
      return put_values(node, value, 0, to);
    }
    dom::array list;
    if (value.get(list) != simdjson::SUCCESS) return false;
    Shape shape = node.spec.shape;
    // The size that it remembers has 24 bits.
    std::int64_t items = 0;
    for ([[maybe_unused]] const dom::element item : list) ++items;
    shape.front() = items;
    const auto bytes = json_list_bytes(shape, dtype, record_);
    if (!bytes) return false;
    std::byte* const values = scratch_.allocate(*bytes);
    std::byte* to = values;
    if (!put_values(node, value, 0, to)) return false;
    column.tensors[row_] = Tensor::copy(dtype, std::move(shape), {values, *bytes});
    return true;
  }

  /// Writes a number or a list of them, of the sizes from `depth` on, and moves `to`.
  bool put_values(const JsonNode& node, dom::element value, std::size_t depth, std::byte*& to) {
    if (depth == node.spec.shape.size()) return put_number_of(node, value, to);
    dom::array list;
    if (value.get(list) != simdjson::SUCCESS) return false;
    const std::int64_t size = node.spec.shape[depth];
    std::int64_t items = 0;
    for (const dom::element item : list) {
      if (items++ == size) return false;
      if (!put_values(node, item, depth + 1, to)) return false;
    }
    return size == kUnknown || items == size;
  }

  bool put_number_of(const JsonNode& node, dom::element value, std::byte*& to) {
    const std::size_t unit = dtype_size(node.spec.dtype);
    JsonNumber number;
    switch (value.type()) {
      case dom::element_type::INT64:
        number = {JsonNumber::Kind::whole, value.get_int64().value_unsafe()};
        break;
      case dom::element_type::UINT64:
        number = {JsonNumber::Kind::large, 0, value.get_uint64().value_unsafe()};
        break;
      case dom::element_type::DOUBLE:
        number = {JsonNumber::Kind::real, 0, 0, value.get_double().value_unsafe()};
        break;
      case dom::element_type::BOOL: {
        if (node.spec.dtype != Dtype::boolean) return false;
        const bool flag = value.get_bool().value_unsafe();
        std::memcpy(to, &flag, sizeof flag);
        to += unit;
        return true;
      }
      case dom::element_type::NULL_VALUE:
        if (node.fill.number.empty()) return false;
        std::memcpy(to, node.fill.number.data(), unit);
        to += unit;
        return true;
      default:
        return false;
    }
    if (put_number(number, node.spec.dtype, to) != NumberFit::good) return false;
    to += unit;
    return true;
  }

  const std::string_view record_;
  const BlockView& out_;
  const std::size_t row_;
  Scratch& scratch_;
};

}  // namespace

bool decode_json_fast(const JsonFields& fields, std::string_view record, const BlockView& out,
                      std::size_t row, Scratch& scratch) {
  thread_local dom::parser parser;
  const Scratch::Frame frame(scratch);
  auto* const padded = scratch.array<char>(record.size() + simdjson::SIMDJSON_PADDING);
  if (!record.empty()) std::memcpy(padded, record.data(), record.size());
  std::memset(padded + record.size(), 0, simdjson::SIMDJSON_PADDING);
  bool done = false;
  if (record.size() > parser.capacity() || parser.max_depth() != kJsonDepthMax) {
    if (parser.allocate(record.size(), kJsonDepthMax) != simdjson::SUCCESS) return false;
  }
  dom::object root;
  if (parser.parse(padded, record.size(), false).get(root) == simdjson::SUCCESS)
    done = FastDecoder(record, out, row, scratch).put_object(fields.root, root);
  if (parser.capacity() > kKeptBytesMax) parser = dom::parser();
  return done;
}

}  // namespace penstock

#else

namespace penstock {

bool decode_json_fast(const JsonFields&, std::string_view, const BlockView&, std::size_t,
                      Scratch&) {
  return false;
}

}  // namespace penstock

#endif
