#pragma once
// The fields of a packed row, from the documents in it.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "order/packing.h"
#include "penstock/block.h"
#include "penstock/result.h"
#include "penstock/verb_options.h"

namespace penstock {

struct PackSettings {
  PackRules rules;
  PackOptions options;
  std::optional<ShuffleOptions> shuffle;  // of the documents of a block
};

/// The spec of a packed row.
ElementSpec packed_row_spec(const PackSettings& settings);

/// The number of tokens of a document. Fails if its tokens are not i32 numbers from 0 on in one
/// dimension, or if its mask has another size.
Result<std::uint32_t> document_length(const PackSettings& settings, const Sample& document);

/// Writes one row: `add` its parts in order, then `finish`.
class PackedRowWriter {
 public:
  /// Row `row` of `out`, whose spec is that of `packed_row_spec`.
  PackedRowWriter(const PackSettings& settings, const BlockView& out, std::size_t row);
  /// `document` must have `length` tokens; fails if it has not, or as `document_length` does.
  Result<void> add(const DocumentPart& part, const Sample& document, std::uint32_t length);
  void finish();

 private:
  [[nodiscard]] std::int32_t separator() const;
  Result<void> write_labels(const DocumentPart& part, const Tensor& tokens, const Tensor* mask);

  const PackSettings& settings_;
  Tensor* const cu_seqlens_;  // null if the row has no such field
  const std::span<std::int32_t> document_;
  const std::span<std::int64_t> labels_;
  const std::span<std::int32_t> positions_;
  const std::span<std::int32_t> tokens_;
  std::vector<std::int32_t> ends_{0};
  std::int32_t parts_ = 0;
  std::size_t filled_ = 0;
};

}  // namespace penstock
