#include "record/csv_scanner.h"

#include <fmt/format.h>

#include <cstring>

namespace penstock {
namespace {

/// The next `wanted` at or after `at`, else `end`.
const char* find(const char* at, const char* end, char wanted) {
  const void* const found = std::memchr(at, wanted, static_cast<std::size_t>(end - at));
  return found == nullptr ? end : static_cast<const char*>(found);
}

}  // namespace

// Each byte is searched once for newlines and once for quotes.
struct CsvScanner::Piece {
  std::uint64_t offset;
  const char* begin;
  const char* end;
  const char* newline = nullptr;
  const char* quote = nullptr;

  [[nodiscard]] std::uint64_t place(const char* at) const {
    return offset + static_cast<std::uint64_t>(at - begin);
  }
  const char* next_newline(const char* at) {
    if (newline < at) newline = find(at, end, '\n');
    return newline;
  }
  const char* next_quote(const char* at, char wanted) {
    if (quote < at) quote = wanted == '\0' ? end : find(at, end, wanted);
    return quote;
  }
};

/// To the end of the line, or to a quoted field.
const char* CsvScanner::skip_unquoted(Piece& piece, const char* at) {
  const char* const line_end = piece.next_newline(at);
  while (at < line_end) {
    const char* const quote = piece.next_quote(at, format_.quote);
    if (quote >= line_end) break;
    at = quote + 1;
    const char before = quote == piece.begin ? previous_ : quote[-1];
    if (before == format_.delimiter) {
      state_ = State::quoted;
      quote_start_ = piece.place(quote);
      return at;
    }
  }
  if (line_end == piece.end) return line_end;
  state_ = State::line_start;
  return line_end + 1;
}

void CsvScanner::scan_text(std::uint64_t offset, std::string_view text,
                           std::vector<std::uint64_t>& starts) {
  Piece piece{offset, text.data(), text.data() + text.size()};
  const char* at = piece.begin;
  while (at < piece.end) {
    switch (state_) {
      case State::line_start:
        if (*at == '\n' || *at == '\r') {
          ++at;
        } else if (format_.comment != '\0' && *at == format_.comment) {
          state_ = State::comment;
        } else {
          line_start_ = piece.place(at);
          in_header_ = header_next_;
          header_next_ = false;
          if (!in_header_) starts.push_back(line_start_);
          state_ = State::field_start;
        }
        break;
      case State::comment:
        at = piece.next_newline(at);
        if (at == piece.end) break;
        state_ = State::line_start;
        ++at;
        break;
      case State::field_start:
        state_ = State::unquoted;
        if (format_.quote != '\0' && *at == format_.quote) {
          state_ = State::quoted;
          quote_start_ = piece.place(at);
          ++at;
        }
        break;
      case State::unquoted:
        at = skip_unquoted(piece, at);
        break;
      case State::quoted:
        at = piece.next_quote(at, format_.quote);
        if (at == piece.end) break;
        state_ = State::quote_seen;
        ++at;
        break;
      case State::quote_seen:
        state_ = State::unquoted;
        if (*at == format_.quote) {
          state_ = State::quoted;
          ++at;
        }
        break;
    }
  }
  previous_ = piece.end[-1];
}

ScanEnd CsvScanner::finish_text(std::uint64_t file_bytes, std::vector<std::uint64_t>& starts) {
  ScanEnd end{file_bytes};
  if (state_ == State::quoted) {
    end.damage =
        fmt::format("the quoted field that begins at byte {} of the file never ends", quote_start_);
    // A header that is the whole file must not hide it.
    if (in_header_) starts.push_back(line_start_);
  }
  return end;
}

}  // namespace penstock
