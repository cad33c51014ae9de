#pragma once
// A block: some consecutive rows of one batch, column by column. Ops read one block and write
// another; the last op of a chain writes directly into the batch.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <penstock/rng.h>
#include <penstock/spec.h>

namespace penstock {

/// One field of a block. Dense: row i is the `row_bytes` at `data + i * row_bytes`. Otherwise
/// (values of varying size, or a spec that is unknown before running) `tensors[i]` is row i. A
/// dense field whose sizes were learned from the first sample has `others`: if a row has other
/// sizes it is others[i] instead.
struct Column {
  std::byte* data = nullptr;
  std::size_t row_bytes = 0;
  Tensor* tensors = nullptr;
  Tensor* others = nullptr;
  [[nodiscard]] bool dense() const { return tensors == nullptr; }
};

class RowFailures;

/// The state of a row, in Identity::failed.
inline constexpr std::uint8_t kRowGood = 0;
inline constexpr std::uint8_t kRowFailed = 1;  // it could not be computed
inline constexpr std::uint8_t kRowMasked = 2;  // a filter masked it

/// Which samples the rows of a block are, and which rows have failed. `occurrence` (how often the
/// sample came before in this pass) is null if nothing needs it; `failures` is null if the first
/// failure ends the block.
struct Identity {
  std::uint64_t* sample_id = nullptr;
  std::uint64_t* occurrence = nullptr;
  std::uint8_t* failed = nullptr;
  RowFailures* failures = nullptr;
};

/// A view of rows; cheap to copy and to slice. While the spec is unknown the rows are whole samples
/// and there are no columns.
struct BlockView {
  std::size_t rows = 0;
  const ElementSpec* spec = nullptr;
  std::span<const Column> columns;
  Sample* samples = nullptr;
  Identity identity;
};

/// The argument of a user's block function: typed columns by path. Valid during the call.
class Block {
 public:
  explicit Block(const BlockView& view) : view_(view) {}
  [[nodiscard]] std::size_t rows() const { return view_.rows; }
  [[nodiscard]] const ElementSpec& spec() const { return *view_.spec; }
  [[nodiscard]] std::span<const std::uint64_t> sample_id() const {
    return {view_.identity.sample_id, view_.rows};
  }
  /// All values of a dense field, row after row. Throws ConfigError for a wrong dtype or path.
  template <typename T>
  [[nodiscard]] std::span<T> column(std::string_view path = "") const {
    const Column& found = find(path, kDtypeOf<T>);
    return {reinterpret_cast<T*>(found.data), view_.rows * found.row_bytes / sizeof(T)};
  }

 private:
  [[nodiscard]] const Column& find(std::string_view path, Dtype wanted) const;
  const BlockView& view_;
};

}  // namespace penstock
