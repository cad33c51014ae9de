#include "store/row_file.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"

namespace penstock {
namespace {

constexpr std::string_view kIndexMagic = "PSINDEX1";
constexpr std::size_t kIndexStartBytes = 40;  // magic, salt, data, end, number of rows

/// A part of a file in memory, which moves as it is read.
class FileWindow {
 public:
  FileWindow(Io& io, const FileHandle& file, std::uint64_t end) : io_(io), file_(file), end_(end) {}

  /// The bytes from `offset` on: at least `bytes`, fewer only at the end.
  Result<std::string_view> at(std::uint64_t offset, std::size_t bytes, std::size_t read_ahead) {
    const std::uint64_t left = end_ - std::min(offset, end_);
    const std::size_t wanted = std::min<std::uint64_t>(bytes, left);
    if (offset < first_ || offset + wanted > first_ + text_.size()) {
      text_.resize(std::min<std::uint64_t>(std::max(bytes, read_ahead), left));
      first_ = offset;
      if (auto done = io_.read_at(file_, offset,
                                  std::as_writable_bytes(std::span(text_.data(), text_.size())));
          !done)
        return std::move(done.failure());
    }
    return std::string_view(text_).substr(offset - first_);
  }

 private:
  Io& io_;
  const FileHandle& file_;
  const std::uint64_t end_;
  std::uint64_t first_ = 0;
  std::string text_;
};

template <typename Number>
void add_number(std::string& text, Number number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::uint64_t number_at(std::string_view bytes, std::size_t offset) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

}  // namespace

Result<std::uint64_t> scan_rows(Io& io, const FileHandle& file, std::uint64_t salt,
                                std::uint64_t from, std::uint64_t end,
                                std::vector<StoredRow>& rows) {
  constexpr std::size_t kAhead = std::size_t{256} << 10;
  constexpr std::size_t kHop = 4096;  // where payloads are larger than what is read
  FileWindow window(io, file, end);
  std::uint64_t complete = from;
  std::uint64_t at = from;
  std::uint64_t last_bytes = 0;
  while (at + kRowHeaderBytes <= end) {
    auto bytes = window.at(at, kRowHeaderBytes, last_bytes > kAhead / 8 ? kHop : kAhead);
    if (!bytes) return std::move(bytes.failure());
    const auto header = parse_row_header(*bytes, salt);
    const std::uint64_t whole = header ? kRowHeaderBytes + header->payload_bytes : 0;
    if (!header || whole > end - at) {
      at += 8;  // frames begin at multiples of 8
      last_bytes = 0;
      continue;
    }
    rows.push_back({header->number, at, header->payload_bytes});
    last_bytes = frame_bytes(header->payload_bytes);
    at += last_bytes;
    complete = at;
  }
  return complete;
}

std::string row_file_index_text(const RowFileIndex& index) {
  std::string text(kIndexMagic);
  text.reserve(kIndexStartBytes + index.rows.size() * 24 + 4);
  add_number(text, index.start.salt);
  add_number(text, index.start.data);
  add_number(text, index.end);
  add_number(text, static_cast<std::uint64_t>(index.rows.size()));
  for (const StoredRow& row : index.rows) {
    add_number(text, row.number);
    add_number(text, row.offset);
    add_number(text, row.payload_bytes);
  }
  add_number(text, crc32c(text));
  return text;
}

std::optional<RowFileIndex> parse_row_file_index(std::string_view text, const RowFileStart& start,
                                                 std::uint64_t file_bytes) {
  constexpr std::size_t kRow = sizeof(StoredRow);
  static_assert(kRow == 24);
  if (text.size() < kIndexStartBytes + 4 || !text.starts_with(kIndexMagic)) return std::nullopt;
  const std::size_t checked = text.size() - 4;
  std::uint32_t crc = 0;
  std::memcpy(&crc, text.data() + checked, sizeof crc);
  if (crc32c(text.substr(0, checked)) != crc) return std::nullopt;
  if (number_at(text, 8) != start.salt || number_at(text, 16) != start.data) return std::nullopt;
  RowFileIndex index{start, number_at(text, 24), {}};
  const std::uint64_t count = (checked - kIndexStartBytes) / kRow;
  if (number_at(text, 32) != count || (checked - kIndexStartBytes) % kRow != 0) return std::nullopt;
  if (index.end > file_bytes + 7) return std::nullopt;  // the file was cut
  index.rows.resize(count);
  std::memcpy(static_cast<void*>(index.rows.data()), text.data() + kIndexStartBytes, count * kRow);
  const bool inside = std::ranges::all_of(index.rows, [&](const StoredRow& row) {
    return row.payload_bytes <= kRowBytesMax && row.offset <= index.end &&
           kRowHeaderBytes + row.payload_bytes <= index.end - row.offset;
  });
  if (!inside) return std::nullopt;
  return index;
}

}  // namespace penstock
