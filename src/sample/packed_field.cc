#include "sample/packed_field.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "sample/rows.h"
#include "sample/with_type.h"

namespace penstock {
namespace {

/// True if only the first size of a row is unknown.
bool only_first_open(const FieldSpec& field) {
  return !field.shape.empty() && field.shape.front() == kUnknown &&
         shape_known({field.shape.begin() + 1, field.shape.end()});
}

std::size_t inner_bytes(const FieldSpec& field) {
  return shape_values({field.shape.begin() + 1, field.shape.end()}) * dtype_size(field.dtype);
}

/// The shape of all rows that are samples, or nothing. Without a row the open sizes are 0.
std::optional<Shape> common_shape(const FieldSpec& field, std::span<const RowValue> rows) {
  const Shape* common = nullptr;
  for (const RowValue& row : rows) {
    if (row.shape == nullptr) continue;
    if (common != nullptr && *row.shape != *common) return std::nullopt;
    common = row.shape;
  }
  if (common != nullptr) return *common;
  Shape none = field.shape;
  for (std::int64_t& size : none) size = std::max<std::int64_t>(size, 0);
  return none;
}

template <typename T>
std::optional<std::vector<std::byte>> exact_bytes(double value) {
  if constexpr (std::is_same_v<T, NoType>) {
    return std::nullopt;
  } else {
    if constexpr (std::is_integral_v<T>) {
      const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);  // exact, unlike max()
      if (!(value >= (std::is_signed_v<T> ? -end : 0) && value < end) || value != std::floor(value))
        return std::nullopt;
    }
    using Through = std::conditional_t<sizeof(T) == 2 && !std::is_integral_v<T>, float, double>;
    const T converted = static_cast<T>(static_cast<Through>(value));
    const auto bytes = std::as_bytes(std::span<const T>(&converted, 1));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }
}

/// Copies a row of `from` sizes into a larger one of `to` sizes, at `first` of dimension 0.
void copy_box(const std::byte* source, const Shape& from, std::byte* target, const Shape& to,
              std::size_t value_size, std::int64_t first) {
  // The inner dimensions that are equal are copied in one piece.
  std::size_t axis = from.size();
  std::size_t run = value_size;
  while (axis > 1 && from[axis - 1] == to[axis - 1]) run *= static_cast<std::size_t>(from[--axis]);
  const std::size_t from_run = run * static_cast<std::size_t>(from[axis - 1]);
  const std::size_t to_run = run * static_cast<std::size_t>(to[axis - 1]);
  if (from_run == 0) return;
  std::size_t pieces = 1;
  for (std::size_t i = 0; i + 1 < axis; ++i) pieces *= static_cast<std::size_t>(from[i]);
  std::vector<std::int64_t> at(axis, 0);  // of the piece
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < axis; ++i)
      place = place * static_cast<std::size_t>(to[i]) +
              static_cast<std::size_t>(at[i] + (i == 0 ? first : 0));
    const std::size_t shift = axis == 1 ? static_cast<std::size_t>(first) * run : 0;
    std::memcpy(target + place * to_run + shift, source + piece * from_run, from_run);
    for (std::size_t i = axis - 1; i-- > 0;) {
      if (++at[i] < from[i]) break;
      at[i] = 0;
    }
  }
}

void fill(std::vector<std::byte>& values, const std::vector<std::byte>& value) {
  if (std::ranges::all_of(value, [](std::byte byte) { return byte == std::byte{0}; })) return;
  for (std::size_t i = 0; i < values.size(); i += value.size())
    std::memcpy(values.data() + i, value.data(), value.size());
}

}  // namespace

const FieldPadding* Padding::of(std::string_view path) const {
  const auto named = std::ranges::find(
      fields, path, [](const auto& field) -> std::string_view { return field.first; });
  if (named != fields.end()) return &named->second;
  return only_named ? nullptr : &all;
}

std::span<const std::byte> PackedField::row(std::size_t index) const {
  const auto first = static_cast<std::size_t>(offsets[index]) * unit_bytes;
  const auto last = static_cast<std::size_t>(offsets[index + 1]) * unit_bytes;
  return std::span(values).subspan(first, last - first);
}

Shape PackedField::shape_of(std::size_t index, const FieldSpec& field) const {
  if (row_shape) return *row_shape;
  Shape shape = field.shape;
  if (shapes.empty()) {
    if (!shape.empty()) shape.front() = offsets[index + 1] - offsets[index];
    return shape;
  }
  std::copy_n(shapes.begin() + static_cast<std::ptrdiff_t>(index * shape.size()), shape.size(),
              shape.begin());
  return shape;
}

std::size_t PackedField::bytes() const {
  return values.size() + (offsets.size() + shapes.size() + lengths.size()) * sizeof(std::int64_t);
}

std::optional<std::vector<std::byte>> value_bytes(double value, Dtype dtype) {
  return with_type(dtype, [value]<typename T>(T) { return exact_bytes<T>(value); });
}

PackedField pack_rows(const FieldSpec& field, std::span<const RowValue> rows, bool one_tensor) {
  const std::optional<Shape> common =
      one_tensor && !is_variable(field.dtype) ? common_shape(field, rows) : std::nullopt;
  if (common && std::ranges::any_of(rows, [](const RowValue& row) { return !row.shape; })) {
    // Rows without a sample are zeros of that shape.
    const std::vector<std::byte> zeros(shape_values(*common) * dtype_size(field.dtype));
    std::vector<RowValue> all(rows.begin(), rows.end());
    for (RowValue& row : all)
      if (row.shape == nullptr) row = {zeros, &*common};
    return pack_rows(field, all, true);
  }
  PackedField packed;
  const bool text = is_variable(field.dtype);
  const bool by_length = !text && only_first_open(field);
  packed.unit_bytes = text ? 1 : by_length ? inner_bytes(field) : dtype_size(field.dtype);
  packed.offsets.assign(rows.size() + 1, 0);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowValue& row = rows[i];
    bytes += row.bytes.size();
    std::size_t units = row.bytes.size() / std::max<std::size_t>(1, packed.unit_bytes);
    if (by_length) units = row.shape == nullptr ? 0 : static_cast<std::size_t>(row.shape->front());
    packed.offsets[i + 1] = packed.offsets[i] + static_cast<std::int64_t>(units);
    if (text) continue;
    packed.lengths.push_back(row.shape == nullptr || row.shape->empty() ? 0 : row.shape->front());
    for (std::size_t d = 0; !by_length && d < field.shape.size(); ++d)
      packed.shapes.push_back(row.shape == nullptr ? 0 : (*row.shape)[d]);
  }
  packed.values.resize(bytes);
  std::size_t at = 0;
  for (const RowValue& row : rows) {
    if (row.bytes.empty()) continue;
    std::memcpy(packed.values.data() + at, row.bytes.data(), row.bytes.size());
    at += row.bytes.size();
  }
  packed.row_shape = common;
  return packed;
}

std::optional<CannotPad> pad_rows(const FieldSpec& field, std::span<const RowValue> rows,
                                  const FieldPadding& rule, PackedField& to) {
  const auto value = value_bytes(rule.value, field.dtype);
  if (!value)
    return CannotPad{0,
                     fmt::format("{} cannot be a value of field \"{}\" ({})", rule.value,
                                 field.path, field.text()),
                     "pad with a value of its dtype"};
  Shape wanted = field.shape;
  for (std::size_t d = 0; d < wanted.size(); ++d) {
    if (field.shape[d] != kUnknown) continue;
    wanted[d] = 0;
    for (const RowValue& row : rows)
      if (row.shape != nullptr) wanted[d] = std::max(wanted[d], (*row.shape)[d]);
    if (d == 0 && rule.length) {
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i].shape != nullptr && rows[i].shape->front() > *rule.length)
          return CannotPad{i,
                           fmt::format("field \"{}\" has length {}, more than the {} that rows are "
                                       "padded to",
                                       field.path, rows[i].shape->front(), *rule.length),
                           "truncate it before, or pad to a larger length"};
      wanted[d] = *rule.length;
    }
    wanted[d] = (wanted[d] + rule.multiple_of - 1) / rule.multiple_of * rule.multiple_of;
  }
  std::size_t row_size = value->size();
  std::size_t all = 0;
  bool too_large = false;
  for (const std::int64_t size : wanted)
    too_large =
        __builtin_mul_overflow(row_size, static_cast<std::size_t>(size), &row_size) || too_large;
  if (too_large || __builtin_mul_overflow(row_size, rows.size(), &all) || all > SIZE_MAX / 2)
    return CannotPad{0,
                     fmt::format("rows of field \"{}\" padded to {} do not fit into memory",
                                 field.path, shape_text(wanted)),
                     "cut long rows before"};
  to = {};
  to.unit_bytes = row_size;
  to.offsets.resize(rows.size() + 1);
  to.values.resize(all);
  fill(to.values, *value);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    to.offsets[i + 1] = static_cast<std::int64_t>(i + 1);
    const Shape* const shape = rows[i].shape;
    to.lengths.push_back(shape == nullptr ? 0 : shape->front());
    if (shape == nullptr || rows[i].bytes.empty()) continue;
    const std::int64_t first = rule.side == PadSide::left ? wanted.front() - shape->front() : 0;
    copy_box(rows[i].bytes.data(), *shape, to.values.data() + i * row_size, wanted, value->size(),
             first);
  }
  to.row_shape = std::move(wanted);
  return std::nullopt;
}

}  // namespace penstock
