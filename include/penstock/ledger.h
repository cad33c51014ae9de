#pragma once
// The samples a loader left out: what, where and why. Under `OnError::skip` a sample that cannot be
// made leaves its share and is written here; step counts stay equal.

#include <cstdint>
#include <string>
#include <vector>

#include <penstock/error.h>

namespace penstock {

enum class OnError : std::uint8_t {
  raise,  // the first sample that cannot be made ends the run, with its name
  skip,   // it is left out and written to the ledger; IO errors that may pass are still raised
};

struct LedgerEntry {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  SampleKey sample;
  std::string op;
  std::string reason;
};

/// Called by the thread that consumes.
class Ledger {
 public:
  /// With a `file` every entry is appended to it as one line of JSON. More than `limit` entries in
  /// an epoch end the run.
  Ledger(std::string file, std::uint64_t limit) : file_(std::move(file)), limit_(limit) {}

  /// Throws SampleError naming the first ten of the epoch, and the file, beyond the limit.
  void add(const std::vector<LedgerEntry>& entries);
  /// The latest 1,000 entries.
  [[nodiscard]] const std::vector<LedgerEntry>& entries() const { return entries_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// A table for people.
  [[nodiscard]] std::string text() const;

 private:
  std::string file_;
  std::uint64_t limit_;
  std::uint64_t count_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t epoch_count_ = 0;
  std::vector<std::string> epoch_first_;
  std::vector<LedgerEntry> entries_;
};

}  // namespace penstock
