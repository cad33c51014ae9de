#pragma once
// How rows of different sizes become rows of one size.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock {

enum class PadSide : std::uint8_t {
  right,  // after the values of a row
  left,   // before them
};

/// The padding of one field.
struct FieldPadding {
  double value = 0;
  PadSide side = PadSide::right;
  std::optional<std::int64_t> length = {};  // of every row; default: the longest of the share
  std::int64_t multiple_of = 1;             // lengths are rounded up to a multiple of this
  bool operator==(const FieldPadding&) const = default;
};

/// Which fields are padded, and how.
struct Padding {
  FieldPadding all = {};    // of every field that is not in `fields`
  bool only_named = false;  // fields that are not in `fields` keep their sizes
  std::vector<std::pair<std::string, FieldPadding>> fields = {};  // by path
  bool operator==(const Padding&) const = default;

  /// How the field at `path` is padded, or null.
  [[nodiscard]] const FieldPadding* of(std::string_view path) const;
};

}  // namespace penstock
