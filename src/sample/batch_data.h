#pragma once
// What stands behind a Batch: a slab with its layout, and who the rows are.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "penstock/batch.h"
#include "penstock/block.h"
#include "sample/slab.h"

namespace penstock {

/// Where the fields of a batch of up to `rows_max` rows lie in its slab; every part starts on 64.
struct BatchLayout {
  BatchLayout(ElementSpec spec, std::size_t rows_max);
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

/// Numbers of one share of one step.
struct ShareFacts {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint32_t share = 0;
  std::uint32_t shares = 1;
  std::size_t rows = 0;
  std::uint64_t step_rows = 0;
};

class BatchData {
 public:
  BatchData(std::shared_ptr<const BatchLayout> layout, std::shared_ptr<SlabRing> ring,
            ShareFacts facts);
  ~BatchData();

  /// The rows to be filled. Varying fields go to `tensors` and become (offsets, values) in
  /// `gather`.
  [[nodiscard]] const BlockView& rows() const { return view_; }
  /// Packs the varying fields; call once, when all rows are written.
  void gather();

  [[nodiscard]] const BatchLayout& layout() const { return *layout_; }
  [[nodiscard]] const ShareFacts& facts() const { return facts_; }
  [[nodiscard]] std::byte* at(std::size_t offset) const { return slab_.data() + offset; }
  [[nodiscard]] Ragged ragged(std::size_t field) const;
  [[nodiscard]] std::size_t bytes() const { return slab_.bytes() + varying_bytes_; }
  void set_fence(Fence fence) const;

 private:
  struct Varying {
    std::vector<std::uint64_t> offsets;
    std::vector<std::byte> values;
  };
  const std::shared_ptr<const BatchLayout> layout_;
  const std::shared_ptr<SlabRing> ring_;
  const ShareFacts facts_;
  Slab slab_;
  BlockView view_;
  std::vector<Column> columns_;
  std::vector<Tensor> tensors_;
  std::vector<Varying> varying_;
  std::size_t varying_bytes_ = 0;
  mutable Mutex mutex_;
  mutable Fence fence_ PENSTOCK_GUARDED_BY(mutex_);
};

}  // namespace penstock
