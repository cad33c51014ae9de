#pragma once
// The data behind a Batch: a slab with its layout, and the identity of the rows. Reused when
// nothing references it.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "penstock/batch.h"
#include "penstock/block.h"
#include "sample/slab.h"

namespace penstock {

/// Where the fields of a batch of up to `rows_max` rows are in its slab; every part is aligned
/// to 64.
struct BatchLayout {
  BatchLayout(ElementSpec fields, std::size_t rows);
  ElementSpec spec;
  std::size_t rows_max;
  std::vector<std::size_t> field_offset;     // of dense fields
  std::vector<std::size_t> field_row_bytes;  // 0 for varying fields
  std::vector<std::size_t> varying;          // indices of varying fields
  std::size_t sample_id_offset = 0;
  std::size_t valid_offset = 0;
  std::size_t weight_offset = 0;
  std::size_t bytes = 0;
};

/// An exact fraction.
struct Ratio {
  std::uint64_t over = 1;
  std::uint64_t under = 1;
  [[nodiscard]] double value() const {
    return under == 0 ? 0 : static_cast<double>(over) / static_cast<double>(under);
  }
};

/// The numbers of one share of one step. The mean over its rows of weight * loss, times its loss
/// scale, averaged over the shares, is the mean over the samples of the step.
struct ShareFacts {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint32_t share = 0;
  std::uint32_t shares = 1;
  std::size_t rows = 0;         // that are samples
  std::uint64_t step_rows = 0;  // of all shares
  std::size_t slots = 0;        // rows of a padded share, including padding; 0: not padded

  [[nodiscard]] std::size_t all_rows() const { return slots > 0 ? slots : rows; }
  /// The weight of a row that is a sample.
  [[nodiscard]] Ratio weight() const {
    return slots > 0 ? Ratio{shares * std::uint64_t{slots}, step_rows} : Ratio{};
  }
  [[nodiscard]] Ratio loss_scale() const {
    return slots > 0 ? Ratio{} : Ratio{shares * std::uint64_t{rows}, step_rows};
  }
};

class BatchData {
 public:
  BatchData(std::shared_ptr<const BatchLayout> layout, Slab slab);

  /// Prepares it as the batch of `facts`, to be filled.
  void begin(const ShareFacts& facts);
  /// The rows to be filled. Varying fields go to `tensors` and become (offsets, values) in
  /// `gather`.
  [[nodiscard]] const BlockView& rows() const { return view_; }
  /// Removes the rows that failed: later rows move up; in a padded share, which keeps its shape,
  /// they become padding. Masked rows become padding and keep their place and id. With `keep_one`,
  /// if all rows failed, the first stays as padding.
  void drop_rows(std::span<const std::uint8_t> flags, bool keep_one = false);
  /// Clears the slots without a sample and packs the varying fields; call it once, after all rows
  /// are written.
  void gather();

  [[nodiscard]] const BatchLayout& layout() const { return *layout_; }
  [[nodiscard]] const ShareFacts& facts() const { return facts_; }
  /// Rows that are samples.
  [[nodiscard]] std::size_t valid_count() const { return facts_.rows - masked_; }
  [[nodiscard]] std::byte* at(std::size_t offset) const { return slab_.data() + offset; }
  [[nodiscard]] Ragged ragged(std::size_t field) const;
  [[nodiscard]] std::size_t bytes() const { return slab_.bytes() + varying_bytes_; }
  /// Frees the packed values of varying fields, which will not be read again.
  void drop_varying();
  void set_fence(Fence fence) const;
  /// True if nothing reads the slab any longer.
  [[nodiscard]] bool fence_passed() const;

 private:
  struct Varying {
    std::vector<std::uint64_t> offsets;
    std::vector<std::byte> values;
  };
  [[nodiscard]] std::uint8_t* valid() const;
  [[nodiscard]] float* weight() const;
  void weigh();
  void empty_row(std::size_t row);

  const std::shared_ptr<const BatchLayout> layout_;
  Slab slab_;
  ShareFacts facts_;
  bool uneven_ = false;     // some rows may be invalid or have a weight other than 1
  std::size_t masked_ = 0;  // rows without a sample
  BlockView view_;
  std::vector<Column> columns_;
  std::vector<Tensor> tensors_;
  std::vector<Varying> varying_;
  std::size_t varying_bytes_ = 0;
  mutable Mutex mutex_;
  mutable Fence fence_ PENSTOCK_GUARDED_BY(mutex_);
};

/// Hands out batches and reuses them after their last owner has released them. Thread-safe. A
/// consumer that keeps its batches gets new slabs; at most `spare_bytes_max` bytes wait here.
class BatchRing : public std::enable_shared_from_this<BatchRing> {
 public:
  BatchRing(std::shared_ptr<Allocator> allocator, std::size_t spare_bytes_max)
      : allocator_(std::move(allocator)), spare_bytes_max_(spare_bytes_max) {}

  /// A batch of that layout for `facts`, with a slab that nothing reads.
  std::shared_ptr<BatchData> acquire(const std::shared_ptr<const BatchLayout>& layout,
                                     const ShareFacts& facts);
  [[nodiscard]] std::size_t spare_bytes() const;

 private:
  void release(std::unique_ptr<BatchData> batch);

  const std::shared_ptr<Allocator> allocator_;
  const std::size_t spare_bytes_max_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<BatchData>> spare_ PENSTOCK_GUARDED_BY(mutex_);
  std::size_t spare_bytes_ PENSTOCK_GUARDED_BY(mutex_) = 0;
};

}  // namespace penstock
