#pragma once
// A batch as the consumer gets it: one share of one global step. A handle; copies share the slab,
// which goes back to its ring when the last one is gone. Any thread may read.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include <penstock/spec.h>

namespace penstock {

class BatchData;

/// Where batches live. A slab is one aligned piece of memory that holds one batch; it comes from an
/// Allocator (heap now; shared by descriptor and pinned later) and goes back to it. Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// `bytes` of memory, aligned to 64; throws ResourceError.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* data, std::size_t bytes) noexcept = 0;

  static std::shared_ptr<Allocator> heap();
};

/// Says whether a slab may be reused yet: a copy to a device that still reads it answers false.
using Fence = std::function<bool()>;

/// A field whose rows differ in size: row i is values[offsets[i] .. offsets[i + 1]).
struct Ragged {
  std::span<const std::uint64_t> offsets;
  std::span<const std::byte> values;
};

class Batch {
 public:
  Batch() = default;
  explicit Batch(std::shared_ptr<const BatchData> data) : data_(std::move(data)) {}

  /// Rows of this share; 0 when fewer samples than shares are left. Padded shares have the same
  /// number in every step.
  [[nodiscard]] std::size_t rows() const;
  /// The spec of one row.
  [[nodiscard]] const ElementSpec& spec() const;
  /// Where in the run: numbers of the epoch, of the global step, and of the share.
  [[nodiscard]] std::uint64_t epoch() const;
  [[nodiscard]] std::uint64_t step() const;
  [[nodiscard]] std::uint32_t share() const;

  /// The field at `path` with the rows as first dimension. Dense fields only.
  [[nodiscard]] Tensor operator[](std::string_view path) const;
  template <typename T>
  [[nodiscard]] std::span<const T> values(std::string_view path = "") const {
    return (*this)[path].template values<T>();
  }
  [[nodiscard]] Ragged ragged(std::string_view path) const;
  /// One row as a sample.
  [[nodiscard]] Sample row(std::size_t index) const;

  /// Numbers of the samples in the dataset before shuffle, repeat and batch; UINT64_MAX where the
  /// row is padding.
  [[nodiscard]] std::span<const std::uint64_t> sample_id() const;
  /// 1 where the row is a sample, 0 where it is padding.
  [[nodiscard]] std::span<const std::uint8_t> valid() const;
  /// 1, and in padded shares what makes `loss_scale` 1; 0 where the row is padding.
  [[nodiscard]] std::span<const float> weight() const;
  /// The mean over rows of weight * loss, times this, averaged over shares, is the mean over the
  /// global step.
  [[nodiscard]] double loss_scale() const;
  /// Samples in this share, and in the whole step.
  [[nodiscard]] std::uint64_t valid_count() const;
  [[nodiscard]] std::uint64_t global_valid() const;

  /// Bytes that this batch holds.
  [[nodiscard]] std::size_t bytes() const;
  /// The slab is not reused before `fence` answers true, even when all handles are gone.
  void set_fence(Fence fence) const;

 private:
  std::shared_ptr<const BatchData> data_;
};

}  // namespace penstock
