#pragma once
// The rows of one field, as the buffers of an Arrow column.

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/spec.h"
#include "record/arrow_metadata.h"

namespace penstock {

class ArrowColumnBuilder {
 public:
  explicit ArrowColumnBuilder(FieldSpec field);

  /// Adds a row, which fits the field: that of sample `number`. Throws SampleError for a string
  /// that is not UTF-8.
  void append(const Tensor& value, std::uint64_t number);
  /// Of the rows.
  [[nodiscard]] std::uint64_t bytes() const;
  /// Adds the column, its lists, and the items in them. The buffers stay until `clear`.
  void add_to(ArrowBuffers& buffers) const;
  void clear();

 private:
  void append_values(const Tensor& value);

  const FieldSpec field_;
  std::uint64_t rows_ = 0;
  /// For each size that is unknown, and for the bytes of text: where each list ends, after a 0.
  std::vector<std::vector<std::int64_t>> ends_;
  std::string values_;  // with a bit for each bool
  std::uint64_t values_count_ = 0;
};

}  // namespace penstock
