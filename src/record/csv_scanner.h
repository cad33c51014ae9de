#pragma once
// Where the records of a CSV file begin (RFC 4180).

#include "record/text_scanner.h"

namespace penstock {

/// '\0' for none.
struct CsvFormat {
  char delimiter = ',';
  char quote = '"';
  char comment = '\0';
};

/// A line is a record, or several lines if their ends are within quotes; the first one may be a
/// header instead. Empty lines, comments, and each '\r' before a line belong to the record before.
/// A quote opens a field only at its start. A quoted field that never ends is damage.
class CsvScanner final : public TextScanner {
 public:
  CsvScanner(const CsvFormat& format, bool header) : format_(format), header_next_(header) {}

 protected:
  void scan_text(std::uint64_t offset, std::string_view text,
                 std::vector<std::uint64_t>& starts) override;
  ScanEnd finish_text(std::uint64_t file_bytes, std::vector<std::uint64_t>& starts) override;

 private:
  enum class State : std::uint8_t {
    line_start,
    comment,
    field_start,  // of the first field of a line
    unquoted,     // also after a quoted part
    quoted,
    quote_seen,  // in a quoted field: its end, or the first of two
  };
  /// One piece of text, with the next newline and quote in it.
  struct Piece;

  const char* skip_unquoted(Piece& piece, const char* at);

  const CsvFormat format_;
  bool header_next_;
  State state_ = State::line_start;
  char previous_ = '\0';           // the last byte of the piece before
  std::uint64_t line_start_ = 0;   // of the line that is a record or the header
  std::uint64_t quote_start_ = 0;  // of the field that is quoted
  bool in_header_ = false;
};

}  // namespace penstock
