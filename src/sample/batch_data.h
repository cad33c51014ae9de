#pragma once
// The data behind a Batch: a slab with its layout, and the identity of the rows. Reused when
// nothing references it.
// Fields whose rows differ in size are packed when all rows are written (packed_field.h).

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "penstock/batch.h"
#include "penstock/block.h"
#include "penstock/result.h"
#include "sample/packed_field.h"
#include "sample/slab.h"

namespace penstock {

/// The sizes that were learned from the first sample and differ in a later one. Thread-safe.
class OpenSizes {
 public:
  /// Adds the sizes that `spec` leaves open.
  void add(const ElementSpec& spec);
  /// The learned spec with all sizes found so far left open; null if there are none.
  [[nodiscard]] std::shared_ptr<const ElementSpec> spec() const;

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const ElementSpec> spec_ PENSTOCK_GUARDED_BY(mutex_);
};

/// Where the fields of a batch of up to `rows_max` rows are in its slab; every part is aligned
/// to 64.
struct BatchLayout {
  /// With `learned` the sizes are those of one sample, and rows may differ from them.
  BatchLayout(ElementSpec fields, std::size_t rows, std::shared_ptr<OpenSizes> learned = nullptr);
  ElementSpec spec;
  std::size_t rows_max;
  std::shared_ptr<OpenSizes> open;
  std::vector<std::size_t> field_offset;     // of dense fields
  std::vector<std::size_t> field_row_bytes;  // 0 for varying fields
  std::vector<std::size_t> varying;          // indices of varying fields
  std::vector<std::size_t> may_differ;       // indices of dense fields with learned sizes
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

/// How a batch node makes a batch of rows that differ in size.
struct BatchForm {
  bool whole = false;  // a function of whole batches returned the rows: equal sizes are one tensor
  const Padding* padding = nullptr;  // or null
};

class BatchData {
 public:
  BatchData(std::shared_ptr<const BatchLayout> layout, Slab slab);

  /// Prepares it as the batch of `facts`, to be filled. `form` must be valid until `gather`.
  void begin(const ShareFacts& facts, const BatchForm& form = {});
  /// The rows to be filled. Varying fields go to `tensors` and are packed in `gather`.
  [[nodiscard]] const BlockView& rows() const { return view_; }
  /// Removes the rows that failed: later rows move up; in a padded share, which keeps its shape,
  /// they become padding. Masked rows become padding and keep their place and id. With `keep_one`,
  /// if all rows failed, the first stays as padding.
  void drop_rows(std::span<const std::uint8_t> flags, bool keep_one = false);
  /// Clears the slots without a sample and packs the fields whose rows differ in size; call it
  /// once, after all rows are written. Fails if a row cannot be padded.
  Result<void> gather();
  /// Packs the fields that `spec` leaves open, as if their rows differed here too.
  void open(const std::shared_ptr<const ElementSpec>& spec);

  [[nodiscard]] const BatchLayout& layout() const { return *layout_; }
  /// That of the layout, with the sizes left open that differ here.
  [[nodiscard]] const ElementSpec& spec() const { return opened_ ? *opened_ : layout_->spec; }
  [[nodiscard]] const ShareFacts& facts() const { return facts_; }
  /// Rows that are samples.
  [[nodiscard]] std::size_t valid_count() const { return facts_.rows - masked_; }
  [[nodiscard]] std::byte* at(std::size_t offset) const { return slab_.data() + offset; }
  /// The field, if its rows are packed; otherwise null.
  [[nodiscard]] const PackedField* packed(std::size_t field) const;
  [[nodiscard]] std::size_t bytes() const { return slab_.bytes() + packed_bytes_; }
  /// Frees the packed values, which will not be read again.
  void drop_packed();
  void set_fence(Fence fence) const;
  /// True if nothing reads the slab any longer.
  [[nodiscard]] bool fence_passed() const;

 private:
  [[nodiscard]] std::uint8_t* valid() const;
  [[nodiscard]] float* weight() const;
  void weigh();
  void empty_row(std::size_t row);
  [[nodiscard]] std::vector<RowValue> row_values(std::size_t field) const;
  /// The field with the sizes left open in which some of `rows` differ.
  [[nodiscard]] FieldSpec opened_field(std::size_t field, std::span<const RowValue> rows) const;
  Result<void> pad(std::size_t field, const FieldPadding& rule);
  void put(std::size_t field, const FieldSpec& spec, PackedField packed);

  const std::shared_ptr<const BatchLayout> layout_;
  Slab slab_;
  ShareFacts facts_;
  BatchForm form_;
  bool uneven_ = false;     // some rows may be invalid or have a weight other than 1
  std::size_t masked_ = 0;  // rows without a sample
  BlockView view_;
  std::vector<Column> columns_;
  std::vector<Tensor> tensors_;  // of varying fields, then rows of other sizes than learned
  std::vector<std::optional<PackedField>> packed_;  // by field
  std::size_t packed_bytes_ = 0;
  std::shared_ptr<const ElementSpec> opened_;
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
                                     const ShareFacts& facts, const BatchForm& form = {});
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
