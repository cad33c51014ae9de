#pragma once
// A field of a batch whose rows may differ in size: all rows, one after the other, in one piece of
// memory. Padding makes rows of one size of them.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/padding.h"
#include "penstock/spec.h"

namespace penstock {

/// One row to be packed. A row without a sample has no shape and no bytes.
struct RowValue {
  std::span<const std::byte> bytes;
  const Shape* shape = nullptr;
};

struct PackedField {
  std::vector<std::byte> values;
  /// Row i is values [offsets[i], offsets[i + 1]) in units of `unit_bytes`.
  std::vector<std::int64_t> offsets;
  std::size_t unit_bytes = 1;
  /// Sizes of each row, if a size other than the first may differ; otherwise empty.
  std::vector<std::int64_t> shapes;
  /// First size of each row before padding; empty for text.
  std::vector<std::int64_t> lengths;
  /// The shape of every row, if all have the same and are one tensor.
  std::optional<Shape> row_shape;

  [[nodiscard]] std::span<const std::byte> row(std::size_t index) const;
  /// The shape of a row of `field`.
  [[nodiscard]] Shape shape_of(std::size_t index, const FieldSpec& field) const;
  [[nodiscard]] std::size_t bytes() const;
};

/// Packs the rows of `field`. With `one_tensor` the rows become one tensor if their sizes are
/// equal.
PackedField pack_rows(const FieldSpec& field, std::span<const RowValue> rows, bool one_tensor);

/// Why the rows cannot be padded, and the row.
struct CannotPad {
  std::size_t row = 0;
  std::string why;
  std::string remedy;
};
/// Pads the open sizes of `field` to the largest among `rows`, as `rule` says.
std::optional<CannotPad> pad_rows(const FieldSpec& field, std::span<const RowValue> rows,
                                  const FieldPadding& rule, PackedField& to);

/// The bytes of `value` as one value of `dtype`; nothing if it is not one exactly.
std::optional<std::vector<std::byte>> value_bytes(double value, Dtype dtype);

}  // namespace penstock
