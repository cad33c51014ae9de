#pragma once
// Scanners of text files: a byte order mark of UTF-8 at the start belongs to no record.

#include <cstddef>

#include "record/record_scanner.h"

namespace penstock {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class TextScanner : public RecordScanner {
 public:
  std::uint64_t scan(std::uint64_t offset, std::string_view piece,
                     std::vector<std::uint64_t>& starts) final;
  ScanEnd finish(std::uint64_t file_bytes, std::vector<std::uint64_t>& starts) final;
  /// Bytes that look like the beginning of a mark may be text.
  [[nodiscard]] std::uint64_t undecided_from() const final { return past_mark_ ? UINT64_MAX : 0; }

 protected:
  /// As `scan`, without the mark.
  virtual void scan_text(std::uint64_t offset, std::string_view text,
                         std::vector<std::uint64_t>& starts) = 0;
  virtual ScanEnd finish_text(std::uint64_t file_bytes, std::vector<std::uint64_t>& starts) = 0;

 private:
  void end_mark(std::vector<std::uint64_t>& starts);

  std::size_t mark_bytes_ = 0;  // of a mark, seen so far
  bool past_mark_ = false;
};

}  // namespace penstock
