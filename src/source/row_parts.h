#pragma once
// Rows in parts that follow each other: finds the part of a row.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock {

class RowParts {
 public:
  void add(std::uint64_t rows) {
    // Parts of one size, except the last: a division finds them faster than a search.
    if (ends_.empty()) even_rows_ = rows;
    if (!ends_.empty() && (last_is_shorter_ || rows > even_rows_)) even_rows_ = 0;
    last_is_shorter_ = rows < even_rows_;
    ends_.push_back(this->rows() + rows);
  }
  [[nodiscard]] std::uint64_t rows() const { return ends_.empty() ? 0 : ends_.back(); }
  [[nodiscard]] std::size_t parts() const { return ends_.size(); }

  struct Place {
    std::size_t part = 0;
    std::uint64_t row = 0;  // of the part
  };
  /// `number` is less than `rows()`.
  [[nodiscard]] Place find(std::uint64_t number) const {
    if (even_rows_ > 0) return {number / even_rows_, number % even_rows_};
    const auto part =
        static_cast<std::size_t>(std::ranges::upper_bound(ends_, number) - ends_.begin());
    return {part, number - (part == 0 ? 0 : ends_[part - 1])};
  }

 private:
  std::vector<std::uint64_t> ends_;  // rows of each part and those before
  std::uint64_t even_rows_ = 0;      // of every part but the last; 0 if they differ
  bool last_is_shorter_ = false;
};

}  // namespace penstock
