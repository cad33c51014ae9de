#pragma once
// The ledger of a loader: which samples it skipped under OnError::skip, where and why.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <penstock/error.h>

namespace penstock {

struct LedgerEntry {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  SampleKey sample;
  std::string op;
  std::string reason;
  std::string file = {};  // that holds the sample, if any
};

/// The samples that a loader skipped: which, where and why. Thread-safe.
class Ledger {
 public:
  /// With a `file`, each entry is appended to it as one line of JSON. If that fails, it is reported
  /// once and retried with the next entries. More than `limit` entries in an epoch end the run.
  Ledger(std::string file, std::uint64_t limit);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Throws SampleError, naming the first ten entries of the epoch and the file, once the epoch has
  /// more than `limit` entries.
  void add(const std::vector<LedgerEntry>& entries);
  /// The latest 1,000 entries, oldest first.
  [[nodiscard]] std::vector<LedgerEntry> entries() const;
  /// Number of entries in all epochs.
  [[nodiscard]] std::uint64_t count() const;
  /// The count and the latest entries as readable text.
  [[nodiscard]] std::string text() const;

 private:
  class Entries;
  void write(const std::string& lines);
  std::string file_;
  std::unique_ptr<Entries> entries_;
};

}  // namespace penstock
