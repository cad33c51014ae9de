// tested in src/source/arrow_rows_test.cc
#include "source/arrow_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "penstock/error.h"

namespace penstock {
namespace {

/// A column that is refused, for errors.
struct ColumnInError {
  const std::string& path;
  const std::string& word;
};

[[noreturn]] void refuse(const ColumnInError& column, std::string_view format) {
  throw ConfigError(fmt::format("{}: column \"{}\" has the type \"{}\"", column.word,
                                printable(column.path), printable(std::string(format))),
                    {}, "cast it to numbers, text or lists of numbers, or leave it out");
}

/// Numbers, dates and times, by their letters in the interface.
std::optional<Dtype> number_type(std::string_view format) {
  if (format.starts_with("ts") || format.starts_with("tD") || format == "tdm" || format == "ttu" ||
      format == "ttn")
    return Dtype::i64;
  if (format == "tdD" || format == "tts" || format == "ttm") return Dtype::i32;
  if (format.size() != 1) return std::nullopt;
  switch (format.front()) {
    case 'c':
      return Dtype::i8;
    case 'C':
      return Dtype::u8;
    case 's':
      return Dtype::i16;
    case 'S':
      return Dtype::u16;
    case 'i':
      return Dtype::i32;
    case 'I':
      return Dtype::u32;
    case 'l':
      return Dtype::i64;
    case 'L':
      return Dtype::u64;
    case 'e':
      return Dtype::f16;
    case 'f':
      return Dtype::f32;
    case 'g':
      return Dtype::f64;
    default:
      return std::nullopt;
  }
}

/// The size in "+w:4"; nothing for other formats.
std::optional<std::int64_t> fixed_list_size(std::string_view format) {
  if (!format.starts_with("+w:")) return std::nullopt;
  std::int64_t size = 0;
  const char* const end = format.data() + format.size();
  const auto parsed = std::from_chars(format.data() + 3, end, size);
  if (parsed.ec != std::errc() || parsed.ptr != end || size < 0) return std::nullopt;
  return size;
}

/// The items of a list: numbers or booleans, possibly in fixed lists.
void add_items(const ArrowSchema& schema, const ColumnInError& column, ArrowType& type) {
  const ArrowSchema* item = &schema;
  while (const auto size = fixed_list_size(item->format)) {
    if (item->n_children != 1) refuse(column, item->format);
    type.inside.push_back(*size);
    item = item->children[0];
  }
  const std::string_view format = item->format;
  if (item->dictionary != nullptr) refuse(column, "a list of dictionary values");
  if (format == "b") {
    type.item = ArrowKind::boolean;
    type.dtype = Dtype::boolean;
  } else if (const auto dtype = number_type(format)) {
    type.dtype = *dtype;
  } else {
    refuse(column, fmt::format("a list of {}", format));
  }
}

std::int64_t buffers_of(ArrowKind kind) {
  switch (kind) {
    case ArrowKind::number:
    case ArrowKind::boolean:
    case ArrowKind::list:
      return 2;
    case ArrowKind::text:
    case ArrowKind::text_view:
      return 3;
    case ArrowKind::fixed_list:
      return 1;
  }
  return 1;
}

bool bit(const void* bits, std::int64_t number) {
  return ((static_cast<const std::uint8_t*>(bits)[number / 8] >> (number % 8)) & 1) != 0;
}

std::int64_t offset_at(const void* offsets, bool wide, std::int64_t number) {
  return wide ? static_cast<const std::int64_t*>(offsets)[number]
              : static_cast<const std::int32_t*>(offsets)[number];
}

std::int64_t index_at(const void* indices, Dtype dtype, std::int64_t number) {
  std::int64_t value = 0;  // the machine is little-endian, and indices are not negative
  const std::size_t bytes = dtype_size(dtype);
  std::memcpy(&value,
              static_cast<const std::byte*>(indices) + static_cast<std::size_t>(number) * bytes,
              bytes);
  return value;
}

Failure outside() {
  return {"its offsets are not within its data", {}, "the table is damaged: write it again"};
}

}  // namespace

FieldSpec ArrowType::field(std::string path) const {
  Shape shape;
  if (kind == ArrowKind::list) shape.push_back(kUnknown);
  shape.insert(shape.end(), inside.begin(), inside.end());
  return {std::move(path), dtype, std::move(shape)};
}

ArrowType arrow_type(const ArrowSchema& schema, const std::string& path, const std::string& word) {
  const ColumnInError column{path, word};
  ArrowType type;
  const ArrowSchema* values = &schema;
  if (schema.dictionary != nullptr) {
    const auto index = number_type(schema.format);
    if (!index || *index > Dtype::i64) refuse(column, schema.format);
    type.encoded = true;
    type.index = *index;
    values = schema.dictionary;
  }
  const std::string_view format = values->format;
  if (format == "b") {
    type.kind = ArrowKind::boolean;
    type.dtype = Dtype::boolean;
  } else if (const auto dtype = number_type(format)) {
    type.dtype = *dtype;
  } else if (format == "u" || format == "U" || format == "z" || format == "Z") {
    type.kind = ArrowKind::text;
    type.wide = format == "U" || format == "Z";
    type.dtype = format == "u" || format == "U" ? Dtype::string : Dtype::bytes;
  } else if (format == "vu" || format == "vz") {
    type.kind = ArrowKind::text_view;
    type.dtype = format == "vu" ? Dtype::string : Dtype::bytes;
  } else if ((format == "+l" || format == "+L") && !type.encoded && values->n_children == 1) {
    type.kind = ArrowKind::list;
    type.wide = format == "+L";
    add_items(*values->children[0], column, type);
  } else if (fixed_list_size(format) && !type.encoded) {
    type.kind = ArrowKind::fixed_list;
    add_items(*values, column, type);
  } else {
    refuse(column, format);
  }
  return type;
}

bool ArrowChunk::Values::is_null(std::int64_t number) const {
  if (array->null_count == 0 || array->n_buffers == 0 || buffer(0) == nullptr) return false;
  return !bit(buffer(0), offset + number);
}

bool ArrowChunk::Values::may_be_null(std::int64_t first, std::int64_t count) const {
  if (array->null_count == 0 || array->n_buffers == 0 || buffer(0) == nullptr) return false;
  if (array->null_count > 0) return true;
  // Not counted by the producer.
  const auto* const bits = static_cast<const std::uint8_t*>(buffer(0));
  std::int64_t at = offset + first;
  const std::int64_t end = at + count;
  for (; at < end && at % 8 != 0; ++at)
    if (!bit(bits, at)) return true;
  for (; at + 8 <= end; at += 8)
    if (bits[at / 8] != 0xFF) return true;
  for (; at < end; ++at)
    if (!bit(bits, at)) return true;
  return false;
}

ArrowChunk::ArrowChunk(const ArrowType& type, const ArrowRoute& route, const std::string& path,
                       const std::string& word)
    : type_(type), own_(*route.back()), values_(own_), items_(own_) {
  const std::int64_t rows = route.front()->length;
  std::int64_t offset = 0;
  bool fits = true;
  for (const ArrowArray* const array : route) {
    // The batch has `rows` rows itself; a child has those before its parent's offset, too.
    fits = fits && array->offset >= 0 && array->length >= offset + rows;
    offset += array->offset;
    Values here(*array);
    here.offset = offset;
    around_.push_back(here);
  }
  own_ = around_.back();
  around_.pop_back();
  values_ = own_;
  if (type.encoded) {
    fits = fits && own_.array->dictionary != nullptr && own_.array->n_buffers == 2;
    if (fits) values_ = Values(*own_.array->dictionary);
    values_.offset = values_.array->offset;
  }
  fits = fits && values_.array->n_buffers >= buffers_of(type.kind) && values_.offset >= 0;
  if (type.kind == ArrowKind::list || type.kind == ArrowKind::fixed_list)
    fits = fits && find_items(rows);
  if (!fits || !has_buffers(rows))
    throw ConfigError(
        fmt::format("{}: the buffers of column \"{}\" do not fit its type", word, printable(path)));
  find_nulls(rows);
  plain_ = find_plain();
  bytes_ = count_bytes(rows);
}

bool ArrowChunk::has_buffers(std::int64_t rows) const {
  if (rows == 0) return true;
  if (type_.encoded && own_.buffer(1) == nullptr) return false;
  if (type_.kind == ArrowKind::fixed_list)
    return rows * item_count_ == 0 || items_.buffer(1) != nullptr;
  if (type_.kind == ArrowKind::list && list_values_ * item_count_ > 0 &&
      items_.buffer(1) == nullptr)
    return false;
  return values_.array->length == 0 || values_.buffer(1) != nullptr;
}

void ArrowChunk::find_nulls(std::int64_t rows) {
  const auto any = [rows](const Values& each) { return each.may_be_null(0, rows); };
  may_be_null_ = std::ranges::any_of(around_, any) || any(own_) ||
                 (type_.encoded && values_.may_be_null(0, values_.array->length));
  if (type_.kind != ArrowKind::list && type_.kind != ArrowKind::fixed_list) return;
  const auto marked = [](const Values& each) {
    return each.array->null_count != 0 && each.array->n_buffers > 0 && each.buffer(0) != nullptr;
  };
  items_may_be_null_ =
      (type_.kind == ArrowKind::fixed_list ? items_.may_be_null(0, rows * item_count_)
                                           : marked(items_)) ||
      std::ranges::any_of(inside_, [&](const auto& each) { return marked(each.first); });
}

const std::byte* ArrowChunk::find_plain() const {
  if (may_be_null_ || type_.encoded) return nullptr;
  const bool list = type_.kind == ArrowKind::fixed_list;
  if (list ? items_may_be_null_ || type_.item != ArrowKind::number
           : type_.kind != ArrowKind::number)
    return nullptr;
  const Values& values = list ? items_ : own_;
  if (values.buffer(1) == nullptr) return nullptr;
  return static_cast<const std::byte*>(values.buffer(1)) +
         static_cast<std::size_t>(values.offset) * dtype_size(type_.dtype);
}

std::uint64_t ArrowChunk::count_bytes(std::int64_t rows) const {
  const auto unit =
      static_cast<std::int64_t>(is_variable(type_.dtype) ? 1 : dtype_size(type_.dtype));
  const std::int64_t offset_bytes = type_.wide ? 8 : 4;
  const std::int64_t count = type_.encoded ? values_.array->length : rows;
  // What the offsets of a column span; they may be damaged.
  const auto spanned = [&](const Values& values) {
    if (count == 0) return std::int64_t{0};
    const std::int64_t first = offset_at(values.buffer(1), type_.wide, values.offset);
    const std::int64_t end = offset_at(values.buffer(1), type_.wide, values.offset + count);
    return first >= 0 && end > first && end - first < (std::int64_t{1} << 40) ? end - first : 0;
  };
  std::int64_t bytes = 0;
  switch (type_.kind) {
    case ArrowKind::number:
      bytes = count * unit;
      break;
    case ArrowKind::boolean:
      bytes = count / 8;
      break;
    case ArrowKind::text:
      bytes = count * offset_bytes + spanned(values_);
      break;
    case ArrowKind::text_view: {
      bytes = count * 16;
      const std::int64_t texts = values_.array->n_buffers - 3;
      const auto* const sizes = static_cast<const std::int64_t*>(
          values_.buffer(static_cast<std::size_t>(values_.array->n_buffers - 1)));
      for (std::int64_t i = 0; i < texts && sizes != nullptr; ++i)
        bytes += std::max<std::int64_t>(0, sizes[i]);
      break;
    }
    case ArrowKind::list:
      bytes = count * offset_bytes + spanned(own_) * item_count_ * unit;
      break;
    case ArrowKind::fixed_list:
      bytes = count * item_count_ * unit;
      break;
  }
  if (type_.encoded) bytes += rows * static_cast<std::int64_t>(dtype_size(type_.index));
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, bytes));
}

bool ArrowChunk::find_items(std::int64_t rows) {
  const bool fixed = type_.kind == ArrowKind::fixed_list;
  const ArrowArray* array = own_.array;
  std::int64_t first = own_.offset;  // of the values of `array`
  std::int64_t needed = rows;        // values from `first` on
  if (!fixed) {
    if (array->n_children != 1) return false;
    array = array->children[0];
    if (array->offset < 0) return false;
    first = array->offset;
    needed = list_values_ = array->length;
  }
  // Fixed lists of fixed lists: the items of the innermost follow each other.
  for (std::size_t depth = 0; depth < type_.inside.size(); ++depth) {
    if (array->n_children != 1 || array->children[0]->offset < 0) return false;
    Values here(*array);
    here.offset = first;
    inside_.emplace_back(here, 1);
    for (auto& [values, items] : inside_) items *= type_.inside[depth];
    array = array->children[0];
    item_count_ *= type_.inside[depth];
    std::int64_t end = 0;
    if (__builtin_mul_overflow(first + needed, type_.inside[depth], &end) || array->length < end)
      return false;
    first = first * type_.inside[depth] + array->offset;
    needed *= type_.inside[depth];
  }
  if (fixed) inside_.erase(inside_.begin());  // its nulls are those of the column
  items_ = Values(*array);
  items_.offset = first;
  return array->n_buffers == 2;
}

bool ArrowChunk::item_is_null(std::int64_t number) const {
  for (const auto& [values, items] : inside_)
    if (items > 0 && values.is_null(number / items)) return true;
  return items_.is_null(number);
}

std::int64_t ArrowChunk::index(std::int64_t row) const {
  return type_.encoded ? index_at(own_.buffer(1), type_.index, own_.offset + row) : row;
}

bool ArrowChunk::null_at(std::int64_t row) const {
  for (const Values& each : around_)
    if (each.is_null(row)) return true;
  if (own_.is_null(row)) return true;
  return type_.encoded && in_dictionary(index(row)) && values_.is_null(index(row));
}

bool ArrowChunk::in_dictionary(std::int64_t index) const {
  return !type_.encoded || (index >= 0 && index < values_.array->length);
}

void ArrowChunk::copy_item(const Values& from, std::int64_t number, std::byte* to) const {
  const std::size_t bytes = dtype_size(type_.dtype);
  if (type_.dtype == Dtype::boolean) {
    *to = static_cast<std::byte>(bit(from.buffer(1), from.offset + number) ? 1 : 0);
    return;
  }
  std::memcpy(to,
              static_cast<const std::byte*>(from.buffer(1)) +
                  static_cast<std::size_t>(from.offset + number) * bytes,
              bytes);
}

Result<void> ArrowChunk::copy_value(std::int64_t row, std::byte* to) const {
  const std::int64_t number = index(row);
  if (!in_dictionary(number)) return outside();
  copy_item(values_, number, to);
  return {};
}

Result<std::string_view> ArrowChunk::text(std::int64_t row) const {
  const std::int64_t number = index(row);
  if (!in_dictionary(number)) return outside();
  if (type_.kind == ArrowKind::text_view) return view(values_, number);
  const std::int64_t at = values_.offset + number;
  const std::int64_t first = offset_at(values_.buffer(1), type_.wide, at);
  const std::int64_t end = offset_at(values_.buffer(1), type_.wide, at + 1);
  const std::int64_t all =
      offset_at(values_.buffer(1), type_.wide, values_.array->offset + values_.array->length);
  if (first < 0 || end < first || end > all) return outside();
  return std::string_view(static_cast<const char*>(values_.buffer(2)) + first,
                          static_cast<std::size_t>(end - first));
}

/// A view has 16 bytes: the length, and up to 12 bytes of text or (first 4 bytes, number of a
/// buffer, offset in it).
Result<std::string_view> ArrowChunk::view(const Values& from, std::int64_t number) const {
  constexpr std::int32_t kInside = 12;
  const auto* const at = static_cast<const char*>(from.buffer(1)) + (from.offset + number) * 16;
  std::int32_t parts[4];
  std::memcpy(parts, at, sizeof parts);
  if (parts[0] < 0) return outside();
  const auto bytes = static_cast<std::size_t>(parts[0]);
  if (parts[0] <= kInside) return std::string_view(at + 4, bytes);
  // Buffers: nulls, views, texts, and the sizes of the texts.
  const std::int64_t texts = from.array->n_buffers - 3;
  if (parts[2] < 0 || parts[2] >= texts || parts[3] < 0) return outside();
  const auto* const sizes = static_cast<const std::int64_t*>(
      from.buffer(static_cast<std::size_t>(from.array->n_buffers - 1)));
  if (parts[3] > sizes[parts[2]] - parts[0]) return outside();
  const void* const buffer = from.buffer(2 + static_cast<std::size_t>(parts[2]));
  return std::string_view(static_cast<const char*>(buffer) + parts[3], bytes);
}

Result<Tensor> ArrowChunk::items(std::int64_t row, const std::byte* fill,
                                 const std::shared_ptr<const void>& owner) const {
  const bool fixed = type_.kind == ArrowKind::fixed_list;
  std::int64_t first = row;
  std::int64_t end = row + 1;
  if (!fixed) {
    first = offset_at(own_.buffer(1), type_.wide, own_.offset + row);
    end = offset_at(own_.buffer(1), type_.wide, own_.offset + row + 1);
    if (first < 0 || end < first || end > list_values_) return outside();
  }
  Shape shape;
  shape.reserve(type_.inside.size() + 1);
  if (!fixed) shape.push_back(end - first);
  shape.insert(shape.end(), type_.inside.begin(), type_.inside.end());
  const std::int64_t begin = first * item_count_;
  const std::int64_t count = (end - first) * item_count_;
  const std::size_t bytes = dtype_size(type_.dtype);
  bool nulls = false;
  for (std::int64_t i = 0; i < count && items_may_be_null_ && !nulls; ++i)
    nulls = item_is_null(begin + i);
  if (nulls && fill == nullptr)
    return Failure{"the list has a null in it", {}, "name what nulls become, as in nulls={...}"};
  if (!nulls && type_.item == ArrowKind::number) {
    const auto* const data = static_cast<const std::byte*>(items_.buffer(1));
    const auto from = static_cast<std::size_t>(items_.offset + begin) * bytes;
    return Tensor::view(type_.dtype, std::move(shape),
                        {count == 0 ? reinterpret_cast<const std::byte*>("") : data + from,
                         static_cast<std::size_t>(count) * bytes},
                        owner);
  }
  std::vector<std::byte> values(static_cast<std::size_t>(count) * bytes);
  for (std::int64_t i = 0; i < count; ++i) {
    std::byte* const to = values.data() + static_cast<std::size_t>(i) * bytes;
    if (nulls && item_is_null(begin + i)) {
      std::memcpy(to, fill, bytes);
    } else {
      copy_item(items_, begin + i, to);
    }
  }
  return Tensor::copy(type_.dtype, std::move(shape), values);
}

}  // namespace penstock
