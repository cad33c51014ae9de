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
#include <utility>
#include <vector>

#include <penstock/spec.h>

namespace penstock {

class BatchData;

/// Returns whether a slab may be reused: false while a copy to a device still reads it.
using Fence = std::function<bool()>;

/// A field whose rows differ in size, as a view.
struct Ragged {
  /// All rows, one after the other. If only the first size of a row varies, rows are joined along
  /// it: rows of 2x4 and 3x4 are a tensor of 5x4. Otherwise, and for text, it has one dimension.
  Tensor values;
  /// Row i is values [offsets[i], offsets[i + 1]) of the first dimension.
  std::span<const std::int64_t> offsets;
  /// The first size of each row; empty for text.
  std::span<const std::int64_t> lengths;
  /// All sizes of each row, row after row, if a size other than the first varies; otherwise empty.
  std::span<const std::int64_t> shapes;
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
  /// ConfigError if there is no such field or its rows may differ in size and are not padded.
  [[nodiscard]] Tensor operator[](std::string_view path) const;
  template <typename T>
  [[nodiscard]] std::span<const T> values(std::string_view path = "") const {
    return (*this)[path].template values<T>();
  }
  /// A field whose rows differ in size, as a view. Throws ConfigError if there is no such field.
  [[nodiscard]] Ragged ragged(std::string_view path) const;
  /// True if the rows of the field may differ in size: `ragged` returns it. Sizes that no spec
  /// declares are those of the first sample; from the first batch on in which they differ, the
  /// field is ragged.
  [[nodiscard]] bool is_ragged(std::string_view path) const;
  /// The length of each row, its first size, before padding. Throws ConfigError for text and for
  /// a field without dimensions.
  [[nodiscard]] std::vector<std::int64_t> lengths(std::string_view path = "") const;
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
