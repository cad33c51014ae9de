// tested in src/record/lines_test.cc
#include "record/text_scanner.h"

namespace penstock {

std::uint64_t TextScanner::scan(std::uint64_t offset, std::string_view piece,
                                std::vector<std::uint64_t>& starts) {
  while (!past_mark_ && !piece.empty()) {
    if (piece.front() != kByteOrderMark[mark_bytes_]) {
      end_mark(starts);
    } else {
      ++offset;
      piece.remove_prefix(1);
      past_mark_ = ++mark_bytes_ == kByteOrderMark.size();
    }
  }
  if (!piece.empty()) scan_text(offset, piece, starts);
  return 0;
}

ScanEnd TextScanner::finish(std::uint64_t file_bytes, std::vector<std::uint64_t>& starts) {
  if (!past_mark_) end_mark(starts);
  return finish_text(file_bytes, starts);
}

void TextScanner::end_mark(std::vector<std::uint64_t>& starts) {
  past_mark_ = true;
  // What looked like the beginning of a mark was text.
  if (mark_bytes_ > 0) scan_text(0, kByteOrderMark.substr(0, mark_bytes_), starts);
}

}  // namespace penstock
