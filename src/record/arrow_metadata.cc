// tested in src/record/arrow_file_encoder_test.cc
#include "record/arrow_metadata.h"

#include <fmt/format.h>

#include <utility>

#include "base/printable.h"
#include "base/utf8.h"
#include "penstock/error.h"

namespace penstock {
namespace {

constexpr std::int16_t kVersion = 4;  // V5
constexpr std::uint32_t kMessageBegins = 0xFFFFFFFF;

// The fields of the format's tables, in their order.
namespace message {
enum : std::uint8_t { version, header_type, header, body_length };
}
namespace schema {
enum : std::uint8_t { endianness, fields };
}
namespace field {
enum : std::uint8_t { name, nullable, type_tag, type, dictionary, children };
}
namespace batch {
enum : std::uint8_t { length, nodes, buffers };
}
namespace footer {
enum : std::uint8_t { version, schema, dictionaries, record_batches };
}

enum class TypeTag : std::uint8_t {
  integer = 2,
  floating = 3,
  boolean = 6,
  structure = 13,
  fixed_list = 16,
  large_binary = 19,
  large_text = 20,
  large_list = 21,
};

struct TypeTable {
  TypeTag tag;
  FlatTable table = {};
};

template <typename... Numbers>
void append_numbers(std::string& out, Numbers... numbers) {
  (out.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
}

TypeTable type_of_values(Dtype dtype) {
  const auto integer = [&](bool is_signed) {
    return TypeTable{TypeTag::integer,
                     FlatTable()
                         .number(0, static_cast<std::int32_t>(dtype_size(dtype) * 8))
                         .number(1, is_signed)};
  };
  const auto floating = [](std::int16_t precision) {
    return TypeTable{TypeTag::floating, FlatTable().number(0, precision)};
  };
  switch (dtype) {
    case Dtype::boolean:
      return {TypeTag::boolean};
    case Dtype::u8:
    case Dtype::u16:
    case Dtype::u32:
    case Dtype::u64:
      return integer(false);
    case Dtype::i8:
    case Dtype::i16:
    case Dtype::i32:
    case Dtype::i64:
      return integer(true);
    case Dtype::f16:
      return floating(0);
    case Dtype::bf16:  // the format has no such type; every value of it is a float
    case Dtype::f32:
      return floating(1);
    case Dtype::f64:
      return floating(2);
    case Dtype::bytes:
      return {TypeTag::large_binary};
    case Dtype::string:
      break;
  }
  return {TypeTag::large_text};
}

FlatTable field_table(const std::string& name, TypeTable type, std::vector<FlatTable> children) {
  if (!is_utf8(name))
    throw ConfigError(
        fmt::format("the name of field \"{}\" is not UTF-8, as Arrow's names are", printable(name)),
        {}, "rename it with map");
  return FlatTable()
      .text(field::name, name)
      .number(field::nullable, true)  // as other writers say
      .number(field::type_tag, type.tag)
      .table(field::type, std::move(type.table))
      .tables(field::children, std::move(children));
}

TypeTable type_of_list(const FieldSpec& spec, std::int64_t size) {
  if (size == kUnknown) return {TypeTag::large_list};
  if (size > INT32_MAX)
    throw ConfigError(fmt::format("field \"{}\" has the shape {}; the lists of one size in Arrow "
                                  "files have up to {} items",
                                  printable(spec.path), shape_text(spec.shape), INT32_MAX),
                      {}, "reshape it with map, or store its bytes");
  return {TypeTag::fixed_list, FlatTable().number(0, static_cast<std::int32_t>(size))};
}

/// A tensor: lists in lists, with the values in the innermost.
FlatTable column_of_tensor(const std::string& name, const FieldSpec& spec) {
  const std::size_t dimensions = spec.shape.size();
  const auto name_at = [&](std::size_t depth) { return depth == 0 ? name : "item"; };
  FlatTable column = field_table(name_at(dimensions), type_of_values(spec.dtype), {});
  for (std::size_t i = dimensions; i-- > 0;) {
    std::vector<FlatTable> items;
    items.push_back(std::move(column));
    column = field_table(name_at(i), type_of_list(spec, spec.shape[i]), std::move(items));
  }
  return column;
}

/// Adds the columns of `structure`, whose leaves are the specs from `next` on.
void add_columns(const Structure& structure, const std::vector<FieldSpec>& fields,
                 std::size_t& next, std::vector<FlatTable>& columns) {
  for (std::size_t i = 0; i < structure.children.size(); ++i) {
    const auto& [key, child] = structure.children[i];
    const std::string name = structure.kind == Structure::Kind::tuple ? fmt::format("{}", i) : key;
    if (child.kind == Structure::Kind::leaf) {
      columns.push_back(column_of_tensor(name, fields[next++]));
      continue;
    }
    std::vector<FlatTable> inner;
    add_columns(child, fields, next, inner);
    columns.push_back(field_table(name, {TypeTag::structure}, std::move(inner)));
  }
}

}  // namespace

std::size_t arrow_padded(std::size_t bytes) {
  return (bytes + kArrowAlignment - 1) / kArrowAlignment * kArrowAlignment;
}

void ArrowBuffers::begin_column(std::uint64_t values) {
  append_numbers(columns_, values, std::uint64_t{0});
  add({});  // which values are null; missing if none is
}

void ArrowBuffers::add(std::string_view bytes) {
  append_numbers(places_, bytes_, std::uint64_t{bytes.size()});
  parts_.push_back(bytes);
  bytes_ += arrow_padded(bytes.size());
}

void ArrowBuffers::append_to(std::string& out) const {
  for (const std::string_view part : parts_) {
    out += part;
    out.append(arrow_padded(part.size()) - part.size(), '\0');
  }
}

FlatTable ArrowBuffers::record_batch(std::uint64_t rows) const {
  constexpr std::size_t kStruct = 2 * sizeof(std::uint64_t);
  return FlatTable()
      .number(batch::length, rows)
      .structs(batch::nodes, columns_, kStruct)
      .structs(batch::buffers, places_, kStruct);
}

FlatTable arrow_schema(const ElementSpec& spec) {
  std::vector<FlatTable> columns;
  std::size_t next = 0;
  if (spec.structure.kind == Structure::Kind::leaf) {
    columns.push_back(column_of_tensor("value", spec.fields.front()));
  } else {
    add_columns(spec.structure, spec.fields, next, columns);
  }
  return FlatTable()
      .number(schema::endianness, std::int16_t{0})
      .tables(schema::fields, std::move(columns));
}

void append_arrow_message(std::string& out, std::uint64_t at, ArrowHeader kind, FlatTable header,
                          std::uint64_t body_bytes) {
  std::string table = FlatTable()
                          .number(message::version, kVersion)
                          .number(message::header_type, kind)
                          .table(message::header, std::move(header))
                          .number(message::body_length, body_bytes)
                          .buffer();
  constexpr std::size_t kPrefix = 2 * sizeof(std::uint32_t);
  const std::uint64_t end = at + kPrefix + table.size();
  table.resize(table.size() + arrow_padded(end) - end);
  append_numbers(out, kMessageBegins, static_cast<std::uint32_t>(table.size()));
  out += table;
}

void append_arrow_footer(std::string& out, const ElementSpec& spec,
                         const std::vector<ArrowBlock>& blocks) {
  append_numbers(out, kMessageBegins, std::uint32_t{0});  // the end of the messages
  std::string places;
  for (const ArrowBlock& block : blocks)
    append_numbers(places, block.offset, block.message_bytes, block.body_bytes);
  constexpr std::size_t kStruct = 3 * sizeof(std::uint64_t);
  const std::string table = FlatTable()
                                .number(footer::version, kVersion)
                                .table(footer::schema, arrow_schema(spec))
                                .structs(footer::dictionaries, {}, kStruct)
                                .structs(footer::record_batches, std::move(places), kStruct)
                                .buffer();
  out += table;
  append_numbers(out, static_cast<std::uint32_t>(table.size()));
  out += kArrowMagic;
}

}  // namespace penstock
