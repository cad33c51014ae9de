#pragma once
// One column of an Arrow table: its type, and the rows of each batch.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/arrow.h"
#include "penstock/block.h"
#include "penstock/result.h"

namespace penstock {

/// What the values of a column are in memory.
enum class ArrowKind : std::uint8_t {
  number,      // fixed bytes per value
  boolean,     // bits
  text,        // offsets and bytes
  text_view,   // lengths, and bytes inside or in other buffers
  list,        // offsets, and items
  fixed_list,  // a number of items per value
};

struct ArrowType {
  ArrowKind kind = ArrowKind::number;
  Dtype dtype = Dtype::u8;             // of a value, or of the items of lists
  bool wide = false;                   // offsets have 64 bits
  bool encoded = false;                // indices of type `index` into the values of a dictionary
  Dtype index = Dtype::i32;            // of an encoded column
  std::vector<std::int64_t> inside;    // sizes of the fixed lists in each item of a list
  ArrowKind item = ArrowKind::number;  // number or boolean

  [[nodiscard]] FieldSpec field(std::string path) const;
  bool operator==(const ArrowType&) const = default;
};

/// Throws ConfigError, naming the column, if the type is not supported. `word` is the function that
/// users called.
ArrowType arrow_type(const ArrowSchema& schema, const std::string& path, const std::string& word);

/// The arrays on the way to a column of a batch: the batch, structs, and the column itself.
using ArrowRoute = std::vector<const ArrowArray*>;

/// The column in one batch. Throws ConfigError if its buffers do not fit its type.
class ArrowChunk {
 public:
  ArrowChunk(const ArrowType& type, const ArrowRoute& route, const std::string& path,
             const std::string& word);

  /// Row 0 if all rows follow each other in memory, with no null among them: numbers, and fixed
  /// lists of numbers. Otherwise null.
  [[nodiscard]] const std::byte* plain() const { return plain_; }
  /// The memory that its values need, about.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  [[nodiscard]] bool is_null(std::int64_t row) const { return may_be_null_ && null_at(row); }
  /// A number or boolean, to `dtype_size` bytes.
  [[nodiscard]] Result<void> copy_value(std::int64_t row, std::byte* to) const;
  /// Fails if the offsets of the row are not within those of the column.
  [[nodiscard]] Result<std::string_view> text(std::int64_t row) const;
  /// The items of a list: a view if possible. `fill` replaces nulls among them; without it they
  /// fail.
  [[nodiscard]] Result<Tensor> items(std::int64_t row, const std::byte* fill,
                                     const std::shared_ptr<const void>& owner) const;

 private:
  /// Values of a column or of a dictionary, or the items of lists.
  struct Values {
    explicit Values(const ArrowArray& of) : array(&of) {}
    const ArrowArray* array;
    std::int64_t offset = 0;  // of value 0, with the offsets of the structs around it
    [[nodiscard]] bool is_null(std::int64_t number) const;
    /// True if any of values [first, first + count) may be null.
    [[nodiscard]] bool may_be_null(std::int64_t first, std::int64_t count) const;
    [[nodiscard]] const void* buffer(std::size_t which) const { return array->buffers[which]; }
  };
  [[nodiscard]] bool null_at(std::int64_t row) const;
  /// True if no buffer that rows need is missing.
  [[nodiscard]] bool has_buffers(std::int64_t rows) const;
  void find_nulls(std::int64_t rows);
  [[nodiscard]] const std::byte* find_plain() const;
  [[nodiscard]] std::uint64_t count_bytes(std::int64_t rows) const;
  /// The number of the row's value.
  [[nodiscard]] std::int64_t index(std::int64_t row) const;
  /// False if the index of an encoded column is not in its dictionary.
  [[nodiscard]] bool in_dictionary(std::int64_t index) const;
  /// Sets the items of a list. Returns false if they do not fit `rows` rows.
  [[nodiscard]] bool find_items(std::int64_t rows);
  [[nodiscard]] bool item_is_null(std::int64_t number) const;
  void copy_item(const Values& from, std::int64_t number, std::byte* to) const;
  [[nodiscard]] Result<std::string_view> view(const Values& from, std::int64_t number) const;

  const ArrowType& type_;
  bool may_be_null_ = true;
  bool items_may_be_null_ = true;
  const std::byte* plain_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::vector<Values> around_;  // structs whose nulls are nulls of the column
  Values own_;
  Values values_;                 // own_, or those of the dictionary
  Values items_;                  // of lists
  std::int64_t item_count_ = 1;   // items of one value of a list, or of a fixed list
  std::int64_t list_values_ = 0;  // values of the lists of a column
  /// The fixed lists around the items, and how many items each has.
  std::vector<std::pair<Values, std::int64_t>> inside_;
};

}  // namespace penstock
