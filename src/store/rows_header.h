#pragma once
// dataset.json: what the rows of a folder are.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/digests.h"
#include "penstock/result.h"
#include "penstock/spec.h"

namespace penstock {

/// Identifies what rows are computed from. Equal for equal data, in any process.
struct RowsData {
  Digests digests;
  ElementSpec spec;
  std::string place = {};  // of several caches with one folder: where in the graph
  [[nodiscard]] std::uint64_t number() const;
};

struct RowsHeader {
  RowsData data;
  std::optional<std::uint64_t> rows = {};  // how many there are once complete
  bool complete = false;
  /// Of rows that cannot be computed one by one: which traversal wrote them; 0 for others.
  std::uint64_t build = 0;
  std::string version = {};  // of penstock, which wrote it

  [[nodiscard]] std::string text() const;
  /// What the row files of this folder start with.
  [[nodiscard]] std::uint64_t data_number() const;
};
/// A Failure that says what is wrong: not ours, a newer format, damaged.
Result<RowsHeader> parse_rows_header(std::string_view text);
inline constexpr std::uint64_t kRowsHeaderBytesMax = std::uint64_t{16} << 20;

}  // namespace penstock
