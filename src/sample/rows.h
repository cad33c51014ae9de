#pragma once
// Moving rows between blocks and samples.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/block.h"
#include "sample/scratch.h"

namespace penstock {

/// True if all rows of a field have the same number of bytes, known in advance.
inline bool is_dense(const FieldSpec& field) {
  return !is_variable(field.dtype) && shape_known(field.shape);
}
/// Bytes of one row of a dense field.
inline std::size_t row_bytes(const FieldSpec& field) {
  return shape_values(field.shape) * dtype_size(field.dtype);
}

/// Bytes of all rows of the dense columns.
inline std::size_t dense_bytes(const BlockView& block) {
  std::size_t bytes = 0;
  for (const Column& column : block.columns)
    if (column.dense()) bytes += block.rows * column.row_bytes;
  return bytes;
}

/// Row `row` as a sample whose dense tensors are views of the block.
Sample read_row(const BlockView& block, std::size_t row);
/// Writes `sample` to a row; returns the difference from the block's spec, if any.
[[nodiscard]] std::optional<std::string> write_row(const BlockView& block, std::size_t row,
                                                   const Sample& sample);
/// Copies rows and their identity. Both blocks have the same spec.
void copy_rows(const BlockView& from, std::size_t from_row, const BlockView& to, std::size_t to_row,
               std::size_t rows);
/// Copies row i, of dense columns, and its identity to row places[i].
void scatter_rows(const BlockView& from, const BlockView& to,
                  std::span<const std::uint32_t> places);
/// Rows [first, first + rows) of `block`; the columns live in `scratch`.
BlockView cut_rows(const BlockView& block, std::size_t first, std::size_t rows, Scratch& scratch);

/// A block with its own memory, passed from one op to the next. Lives within a Scratch::Frame.
class ScratchBlock {
 public:
  /// Without `identity` (the identity of the block it will become) it creates its own.
  ScratchBlock(const ElementSpec& spec, std::size_t rows, Scratch& scratch,
               std::optional<Identity> identity = std::nullopt);
  [[nodiscard]] const BlockView& view() const { return view_; }

 private:
  BlockView view_;
  std::vector<Tensor> tensors_;
  std::vector<Sample> samples_;
};

}  // namespace penstock
