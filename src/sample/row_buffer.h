#pragma once
// Rows that outlive the call that computed them: rows pulled from a stream.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "penstock/block.h"

namespace penstock {

/// Grows as rows arrive; written by one thread at a time, read by many.
class RowBuffer {
 public:
  /// `spec` must outlive the buffer. While it is unknown, rows are whole samples.
  explicit RowBuffer(const ElementSpec& spec);
  RowBuffer(const RowBuffer&) = delete;
  RowBuffer& operator=(const RowBuffer&) = delete;

  /// Makes room for `rows` rows; existing rows stay.
  void reserve(std::size_t rows);
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  /// Rows [first, first + rows), which must be within the capacity. Valid until `reserve`.
  [[nodiscard]] BlockView rows(std::size_t first, std::size_t rows);
  [[nodiscard]] const ElementSpec& spec() const { return *spec_; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  const ElementSpec* spec_;
  std::size_t capacity_ = 0;
  std::vector<std::unique_ptr<std::byte, Free>> dense_;  // by field, empty for varying ones
  std::vector<std::vector<Tensor>> tensors_;             // by field, empty for dense ones
  std::vector<Sample> samples_;
  std::vector<std::uint64_t> sample_id_;
  std::vector<std::uint64_t> occurrence_;
  std::vector<Column> columns_;  // of the view requested last
};

/// Moves the rows whose flag is set to the front, in order, and returns how many there are.
std::size_t keep_rows(const BlockView& block, std::span<const std::uint8_t> keep);

}  // namespace penstock
