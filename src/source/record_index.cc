// The file of an index:
//
//   8 bytes "pstkrix1"; then numbers and texts as in base/bytes_taker.h
//   what identifies the scanner; bytes, modification time and content digest of the file
//   count of records, end of the last one, damage
//   the distance of each beginning from the one before, in as few bytes as it needs
//   the CRC-32C of all that
#include "source/record_index.h"

#include <algorithm>
#include <utility>

#include "base/bytes_taker.h"
#include "base/cancelled.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/digest.h"

namespace penstock {
namespace {

constexpr std::string_view kMagic = "pstkrix1";
constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Records that are much larger than a piece are passed over in small pieces: a scanner that skips
/// them needs only their beginnings.
std::uint64_t piece_bytes(std::uint64_t done, std::size_t records) {
  constexpr std::uint64_t kSmallPiece = std::uint64_t{16} << 10;
  return records > 0 && done / records > kPieceBytes / 4 ? kSmallPiece : kPieceBytes;
}

}  // namespace

void RecordStarts::add(std::uint64_t start) {
  PENSTOCK_CHECK(size() == 0 || (*this)[size() - 1] < start);
  if (!wide_.empty()) {
    wide_.push_back(start);
    return;
  }
  if (near_.size() % kPerBase == 0) bases_.push_back(start);
  if (start - bases_.back() <= UINT32_MAX) {
    near_.push_back(static_cast<std::uint32_t>(start - bases_.back()));
    return;
  }
  std::vector<std::uint64_t> wide;
  wide.reserve(near_.size() + 1);
  for (std::size_t i = 0; i < near_.size(); ++i) wide.push_back((*this)[i]);
  wide.push_back(start);
  wide_ = std::move(wide);
  near_ = {};
  bases_ = {};
}

std::size_t RecordStarts::memory_bytes() const {
  return bases_.capacity() * sizeof(std::uint64_t) + near_.capacity() * sizeof(std::uint32_t) +
         wide_.capacity() * sizeof(std::uint64_t);
}

Result<RecordIndex> scan_records(Io& io, const FileHandle& file, RecordScanner& scanner,
                                 const std::function<bool(std::uint64_t bytes)>& progress) {
  RecordIndex index;
  Bytes piece;
  std::vector<std::uint64_t> starts;
  std::uint64_t offset = 0;
  while (offset < file.bytes()) {
    const std::uint64_t wanted = piece_bytes(offset, index.starts.size());
    piece.resize(std::min(wanted, file.bytes() - offset));
    if (auto done = io.read_at(file, offset, piece); !done) return std::move(done.failure());
    starts.clear();
    const std::uint64_t skipped = scanner.scan(offset, text_of(piece), starts);
    for (const std::uint64_t start : starts) index.starts.add(start);
    const std::uint64_t left = file.bytes() - offset - piece.size();
    const std::uint64_t done = piece.size() + std::min(skipped, left);
    offset += done;
    if (!progress(done)) return cancelled(0);
  }
  starts.clear();
  ScanEnd end = scanner.finish(file.bytes(), starts);
  for (const std::uint64_t start : starts) index.starts.add(start);
  PENSTOCK_CHECK_LE(end.end, file.bytes());
  index.end = end.end;
  index.damage = std::move(end.damage);
  return index;
}

Result<std::uint64_t> content_digest(Io& io, const FileHandle& file) {
  constexpr std::uint64_t kPieces = 16;
  constexpr std::uint64_t kBytes = 64;
  Digest digest;
  Bytes piece;
  for (std::uint64_t i = 0; i < kPieces; ++i) {
    // The last piece ends with the file.
    const std::uint64_t room = file.bytes() > kBytes ? file.bytes() - kBytes : 0;
    piece.resize(std::min(kBytes, file.bytes()));
    const std::uint64_t at = i + 1 == kPieces ? room : room / (kPieces - 1) * i;
    if (auto done = io.read_at(file, at, piece); !done) return std::move(done.failure());
    digest.add(text_of(piece));
  }
  return digest.value();
}

std::string encode_index(const RecordIndex& index, const FileHandle& file, std::uint64_t content,
                         std::string_view scanning) {
  std::string bytes(kMagic);
  put(bytes, scanning);
  put(bytes, file.bytes());
  put(bytes, static_cast<std::uint64_t>(file.modified_ns()));
  put(bytes, content);
  put(bytes, index.size());
  put(bytes, index.end);
  put(bytes, std::string_view(index.damage));
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < index.size(); ++i) {
    const std::uint64_t start = index.starts[i];
    put_short(bytes, start - before);
    before = start;
  }
  put(bytes, std::uint64_t{crc32c(bytes)});
  return bytes;
}

std::optional<RecordIndex> decode_index(std::string_view bytes, const FileHandle& file,
                                        std::uint64_t content, std::string_view scanning) {
  constexpr std::size_t kTail = sizeof(std::uint64_t);
  if (!bytes.starts_with(kMagic) || bytes.size() < kMagic.size() + kTail) return std::nullopt;
  BytesTaker tail(bytes.substr(bytes.size() - kTail));
  bytes.remove_suffix(kTail);
  if (tail.number() != crc32c(bytes)) return std::nullopt;
  BytesTaker taker(bytes.substr(kMagic.size()));
  if (taker.text(taker.number(BytesTaker::kTextMax)) != scanning) return std::nullopt;
  if (taker.number() != file.bytes() ||
      taker.number() != static_cast<std::uint64_t>(file.modified_ns()) || taker.number() != content)
    return std::nullopt;
  RecordIndex index;
  const std::uint64_t count = taker.number();
  index.end = taker.number(file.bytes());
  index.damage = taker.text(taker.number(BytesTaker::kTextMax));
  if (!taker.good() || count > taker.left()) return std::nullopt;
  if (count == 0 && !index.damage.empty()) return std::nullopt;  // it is that of the last record
  std::uint64_t start = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t distance = taker.short_number();
    // Beginnings ascend and are in the file, whoever wrote the index.
    if (!taker.good() || (i > 0 && distance == 0) || distance > index.end - start)
      return std::nullopt;
    start += distance;
    index.starts.add(start);
  }
  if (!taker.good() || taker.left() > 0) return std::nullopt;
  return index;
}

}  // namespace penstock
