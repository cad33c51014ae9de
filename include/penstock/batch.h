#pragma once
// A batch as the consumer receives it: one share of one global step. A Batch is a handle: copies
// share the slab, which returns to its ring when the last copy is destroyed. Thread-safe for
// reading; the views and tensors of a batch are valid as long as a copy of it, or of the tensor.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include <penstock/spec.h>

namespace penstock {

class BatchData;

/// Returns whether a slab may be reused: false while a copy to a device still reads it.
using Fence = std::function<bool()>;

/// A field whose rows differ in size: row i is the bytes values[offsets[i] .. offsets[i + 1]).
struct Ragged {
  std::span<const std::uint64_t> offsets;
  std::span<const std::byte> values;
};

class Batch {
 public:
  Batch() = default;
  explicit Batch(std::shared_ptr<const BatchData> data) : data_(std::move(data)) {}

  /// Rows of this share, including padding; 0 if the step has fewer samples than shares. Padded
  /// shares have the same number of rows in every step.
  [[nodiscard]] std::size_t rows() const;
  /// The spec of one row.
  [[nodiscard]] const ElementSpec& spec() const;
  /// The epoch, the global step in it and the share, each from 0.
  [[nodiscard]] std::uint64_t epoch() const;
  [[nodiscard]] std::uint64_t step() const;
  [[nodiscard]] std::uint32_t share() const;

  /// The field at `path`, with the rows as first dimension, as a view of the batch's memory. Throws
  /// ConfigError if there is no such field or its rows differ in size.
  [[nodiscard]] Tensor operator[](std::string_view path) const;
  template <typename T>
  [[nodiscard]] std::span<const T> values(std::string_view path = "") const {
    return (*this)[path].template values<T>();
  }
  /// A field whose rows differ in size, as a view. Throws ConfigError if there is no such field.
  [[nodiscard]] Ragged ragged(std::string_view path) const;
  /// One row as a sample.
  [[nodiscard]] Sample row(std::size_t index) const;

  /// For each row, the number of its sample in the dataset before shuffle, repeat and batch;
  /// UINT64_MAX for padding.
  [[nodiscard]] std::span<const std::uint64_t> sample_id() const;
  /// For each row, 1 for a sample and 0 for padding.
  [[nodiscard]] std::span<const std::uint8_t> valid() const;
  /// The weight of each row: 1, and in padded shares the factor that makes `loss_scale` 1; 0 for
  /// padding.
  [[nodiscard]] std::span<const float> weight() const;
  /// Factor for this share: mean over rows of (weight * loss), times `loss_scale`, averaged over
  /// the shares, is the mean over the samples of the global step.
  [[nodiscard]] double loss_scale() const;
  /// Samples in this share, and in the whole step.
  [[nodiscard]] std::uint64_t valid_count() const;
  [[nodiscard]] std::uint64_t global_valid() const;

  /// Bytes of memory that this batch occupies.
  [[nodiscard]] std::size_t bytes() const;
  /// Keeps the slab from being reused until `fence` returns true, even after all handles are gone.
  void set_fence(Fence fence) const;

 private:
  std::shared_ptr<const BatchData> data_;
};

}  // namespace penstock
