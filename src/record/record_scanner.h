#pragma once
// Where the records of a file begin. Every format of records has a scanner.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

/// How a file ends.
struct ScanEnd {
  std::uint64_t end = 0;  // of the last record
  std::string damage =
      {};  // what is wrong with the last record, which is then the rest of the file
};

/// Is fed a file from its start, in pieces, and finds where each record begins. A record reaches to
/// the beginning of the next one, so that an index needs one number for each. What is before the
/// first record (the header of a CSV file) and after the last one belongs to none.
///
/// Damage never throws: from where a file cannot be followed any further, the rest of it is one
/// record, whose decoder fails with the reason. So no record is lost silently, and the policy for
/// failed samples decides. Used by one thread.
class RecordScanner {
 public:
  virtual ~RecordScanner() = default;
  /// Needs nothing more of the file.
  static constexpr std::uint64_t kRest = UINT64_MAX;
  /// `piece` is the part of the file from `offset` on; it follows the piece before, and what that
  /// call skipped. Appends the beginnings of records in it, or behind `undecided_from`, ascending;
  /// the first byte of a record must have been seen. Returns how many bytes after `piece` it need
  /// not see.
  virtual std::uint64_t scan(std::uint64_t offset, std::string_view piece,
                             std::vector<std::uint64_t>& starts) = 0;
  /// Where a record may begin whose first bytes, already seen, do not tell; a stream keeps what
  /// follows it in memory. UINT64_MAX if there is no such place.
  [[nodiscard]] virtual std::uint64_t undecided_from() const { return UINT64_MAX; }
  /// Called once, at the end of the file.
  virtual ScanEnd finish(std::uint64_t file_bytes, std::vector<std::uint64_t>& starts) = 0;
};

}  // namespace penstock
