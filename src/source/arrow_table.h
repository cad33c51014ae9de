#pragma once
// Tables in Arrow's memory layout: their columns as fields of a sample, and their rows.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "penstock/arrow.h"
#include "penstock/block.h"
#include "penstock/result.h"
#include "sample/scratch.h"
#include "source/arrow_column.h"
#include "source/row_parts.h"

namespace penstock {

/// Calls `release` of a structure of the interface when it is no longer used.
template <typename T>
struct Released : T {
  Released() : T{} {}
  explicit Released(T& taken) : T(std::exchange(taken, T{})) {}
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  ~Released() {
    if (this->release != nullptr) this->release(this);
  }
};
using ArrowBatches = std::deque<Released<ArrowArray>>;

/// A column of a table: a leaf of the element.
struct ArrowLeaf {
  std::string path;
  std::vector<std::size_t> children;  // the way from the batch
  ArrowType type;
  std::vector<std::byte> fill = {};  // for nulls of numbers, and in lists
  std::optional<std::string> text = {};
  bool filled = false;  // nulls have a value
};

/// The columns of a table as the fields of a sample. Immutable.
class ArrowLayout {
 public:
  /// `word` is the function that users called. Throws ConfigError for types that are not supported,
  /// and for values of nulls that do not fit.
  ArrowLayout(std::string word, const ArrowSchema& schema,
              const std::map<std::string, NullValue>& nulls);
  [[nodiscard]] const std::string& word() const { return word_; }
  [[nodiscard]] const ElementSpec& spec() const { return spec_; }
  /// In the order of the element.
  [[nodiscard]] const std::vector<ArrowLeaf>& leaves() const { return leaves_; }
  /// Adds what nulls become.
  void identify_values(Digest& digest) const;
  /// Says what differs if `other` has other columns, or in another order.
  [[nodiscard]] std::optional<std::string> difference(const ArrowLayout& other) const;

 private:
  void sort_leaves(const Sample& places);

  const std::string word_;
  std::vector<ArrowLeaf> leaves_;
  ElementSpec spec_;
};

/// Which rows of a table to write, and where.
struct ArrowRowsWanted {
  std::span<const std::uint64_t> rows;    // numbers of the table
  std::span<const std::uint32_t> places;  // rows of the block, ascending
};

/// The batches of a table. Immutable.
class ArrowTable {
 public:
  /// Throws ConfigError if a batch does not fit the layout.
  ArrowTable(std::shared_ptr<const ArrowLayout> layout,
             std::shared_ptr<const ArrowBatches> batches);
  [[nodiscard]] std::uint64_t rows() const { return parts_.rows(); }
  [[nodiscard]] const ArrowLayout& layout() const { return *layout_; }
  /// The memory of its columns, about.
  [[nodiscard]] std::uint64_t bytes() const;

  /// How texts and lists are returned: as views that keep the batches, or as copies.
  enum class Lending : std::uint8_t { views, copies };
  /// Writes rows to `out`. If it fails, `row` of the failure is a row of the block, and the wanted
  /// rows before it are complete.
  Result<void> write(const ArrowRowsWanted& wanted, const BlockView& out, Lending lending,
                     Scratch& scratch) const;
  /// The value of a column in one row.
  [[nodiscard]] Result<Tensor> value_of(std::size_t leaf, std::uint64_t row) const;

 private:
  using RowPlace = RowParts::Place;
  /// A column in all batches.
  struct LeafData {
    std::vector<ArrowChunk> chunks;
    std::vector<const std::byte*> plain;  // row 0 of each batch; empty unless all of them are plain
  };

  void add_batch(const ArrowArray& batch);
  Result<void> write_dense(std::size_t leaf, std::span<const RowPlace> from,
                           std::span<const std::uint32_t> places, const Column& column,
                           Scratch& scratch) const;
  Result<void> write_open(std::size_t leaf, std::span<const RowPlace> from,
                          std::span<const std::uint32_t> places, Tensor* tensors,
                          Lending lending) const;
  Result<void> copy(std::size_t leaf, const RowPlace& at, std::byte* to) const;
  [[nodiscard]] Result<Tensor> value_at(std::size_t leaf, const RowPlace& at) const;

  const std::shared_ptr<const ArrowLayout> layout_;
  const std::shared_ptr<const ArrowBatches> batches_;
  RowParts parts_;              // the batches that have rows
  std::vector<LeafData> data_;  // of each leaf
};

/// Reads all batches of `stream`. Throws ConfigError for an error of the stream; stops early,
/// without an error, once `wanted()` returns false.
std::shared_ptr<ArrowBatches> read_batches(ArrowArrayStream& stream, const std::string& word,
                                           const std::function<bool()>& wanted = {});
/// The schema of `stream`. Throws ConfigError.
std::unique_ptr<const Released<ArrowSchema>> read_schema(ArrowArrayStream& stream,
                                                         const std::string& word);

}  // namespace penstock
