#pragma once
// The records of compressed files, one after the other.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/io.h"
#include "record/decompressor.h"
#include "record/record_kind.h"

namespace penstock {

/// Immutable; any thread may use it.
struct StreamedFiles {
  struct File {
    std::shared_ptr<const FileHandle> handle;
    Compression compression = Compression::none;
  };
  RecordKind kind;
  std::vector<File> files;
  std::uint64_t record_bytes_max = UINT64_MAX;
};

/// Reads, decompresses and scans. Needs memory for one record and some pieces. Used by one thread
/// at a time.
class RecordStream {
 public:
  RecordStream(Io& io, const StreamedFiles& files) : io_(io), files_(files) {}

  struct Record {
    std::size_t file = 0;
    std::uint64_t number = 0;             // of its file
    std::uint64_t offset = 0;             // in the decompressed file
    std::string_view bytes = {};          // valid until the next call
    std::optional<Failure> failure = {};  // instead of its bytes
  };
  /// The next record, or nothing at the end. After a failure of a file, which comes once, the next
  /// file follows.
  std::optional<Record> next();
  /// Moves to record `number` of `file`; only before the first `next`.
  void skip_to(std::size_t file, std::uint64_t number);
  /// What is before the first record of a file, once `next` has returned one.
  [[nodiscard]] std::string_view preface() const { return preface_; }

 private:
  /// Reads on until the end of the next record is known, or the file ends.
  Result<void> read_record();
  Result<void> decompress();
  void scan(std::string_view fresh, std::uint64_t offset);
  /// What is before `offset` is no longer needed.
  void forget(std::uint64_t offset);
  void drop_forgotten();
  Record take(std::uint64_t end);
  Record fail(Failure failure);
  void open(std::size_t file);

  Io& io_;
  const StreamedFiles& files_;
  std::size_t file_ = 0;
  std::uint64_t number_ = 0;       // of the next record of the file
  std::uint64_t skip_before_ = 0;  // records of the file that nobody wants

  // Of the open file
  bool open_ = false;
  std::unique_ptr<Decompressor> decompressor_;
  std::unique_ptr<RecordScanner> scanner_;
  Bytes input_;
  std::size_t input_used_ = 0;
  std::uint64_t input_offset_ = 0;  // of the next piece
  std::string text_;                // decompressed, from text_offset_ on
  std::uint64_t text_offset_ = 0;
  std::uint64_t kept_from_ = 0;       // what is before may be dropped
  std::uint64_t scan_from_ = 0;       // the scanner need not see what is before
  std::deque<std::uint64_t> starts_;  // of records that were not returned
  std::optional<ScanEnd> end_;
  bool preface_known_ = false;
  std::string preface_;
  bool too_large_ = false;  // the record that begins at starts_[0]; its bytes are not kept
};

}  // namespace penstock
