#pragma once
// Where the records of a file are.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/io.h"
#include "penstock/result.h"
#include "record/record_scanner.h"

namespace penstock {

/// Where each record begins: 4 bytes each, 8 in files with gaps of gigabytes.
class RecordStarts {
 public:
  /// Ascending.
  void add(std::uint64_t start);
  [[nodiscard]] std::size_t size() const { return wide_.empty() ? near_.size() : wide_.size(); }
  [[nodiscard]] std::uint64_t operator[](std::size_t record) const {
    return wide_.empty() ? bases_[record / kPerBase] + near_[record] : wide_[record];
  }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  static constexpr std::size_t kPerBase = 128;
  std::vector<std::uint64_t> bases_;  // of every kPerBase records
  std::vector<std::uint32_t> near_;   // distance from its base
  std::vector<std::uint64_t> wide_;   // instead of both, where a distance has more than 32 bits
};

struct RecordSpan {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// The records of one file.
struct RecordIndex {
  RecordStarts starts;
  std::uint64_t end = 0;    // of the last record
  std::string damage = {};  // of the last record

  [[nodiscard]] std::uint64_t size() const { return starts.size(); }
  [[nodiscard]] RecordSpan at(std::uint64_t record) const {
    const std::uint64_t from = starts[record];
    const bool last = record + 1 == starts.size();
    return {from, (last ? end : starts[record + 1]) - from};
  }
  /// The bytes before the first record.
  [[nodiscard]] std::uint64_t preface_bytes() const { return starts.size() > 0 ? starts[0] : end; }
};

/// Reads through the file. Calls `progress` with the bytes done since the last call; if it returns
/// false the result is a cancelled failure.
Result<RecordIndex> scan_records(Io& io, const FileHandle& file, RecordScanner& scanner,
                                 const std::function<bool(std::uint64_t bytes)>& progress);

/// Recognizes another file of the same size: 16 pieces of its content.
Result<std::uint64_t> content_digest(Io& io, const FileHandle& file);

/// An index and the file that it belongs to, as bytes. `scanning` identifies the scanner.
std::string encode_index(const RecordIndex& index, const FileHandle& file, std::uint64_t content,
                         std::string_view scanning);
/// Nothing if the bytes are not an index of this file, found in this way.
std::optional<RecordIndex> decode_index(std::string_view bytes, const FileHandle& file,
                                        std::uint64_t content, std::string_view scanning);

}  // namespace penstock
