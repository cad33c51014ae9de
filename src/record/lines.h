#pragma once
// Text, one record per line.

#include "record/record_kind.h"
#include "record/text_scanner.h"

namespace penstock {

/// Lines end in `\n`; the last one may lack it. With `skip_blank` lines of nothing but spaces are
/// no records, and spaces before a record do not belong to it; both belong to the record before.
class LineScanner final : public TextScanner {
 public:
  explicit LineScanner(bool skip_blank) : skip_blank_(skip_blank) {}

 protected:
  void scan_text(std::uint64_t offset, std::string_view text,
                 std::vector<std::uint64_t>& starts) override;
  ScanEnd finish_text(std::uint64_t file_bytes, std::vector<std::uint64_t>& starts) override;

 private:
  const bool skip_blank_;
  bool in_line_ = false;
};

/// `line` without its end, `\n` or `\r\n`.
std::string_view without_line_end(std::string_view line);

/// A line as a string in UTF-8, at `row` of `column`. A view if there is an owner.
Result<void> put_line(std::string_view line, const std::shared_ptr<const void>& owner,
                      const Column& column, std::size_t row);

/// from_text: each line is a string, also an empty one.
RecordKind lines_kind();

}  // namespace penstock
