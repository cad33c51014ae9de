#pragma once
// The status of a process in a small file, for `penstock top`: written twice a second while loaders
// run, if PENSTOCK_STATUS names a folder.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace penstock {

/// Keeps the file of this process up to date from a thread of its own, as long as somebody holds
/// it; then the file is removed. Loaders never wait for it: it reads their counters.
class StatusWriter {
 public:
  /// The one of the process; null if PENSTOCK_STATUS is not set, or the file cannot be written,
  /// which is reported once. Thread-safe.
  static std::shared_ptr<StatusWriter> shared();

  StatusWriter(const std::string& folder, std::uint64_t process);
  ~StatusWriter();
  StatusWriter(const StatusWriter&) = delete;
  StatusWriter& operator=(const StatusWriter&) = delete;

  /// Writes the present state without waiting for the next turn. Thread-safe.
  void write_now();

 private:
  void write_until_stopped();

  const std::string path_;
  const std::uint64_t owner_;  // the process that has the thread
  const std::string command_;
  std::byte* map_ = nullptr;
  std::uint64_t inode_ = 0;
  Mutex writing_;
  Mutex mutex_;
  Condition stopped_;
  bool stopping_ PENSTOCK_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Thread> thread_;
};

/// What one loader of a process does.
struct RunStatus {
  std::string dataset;
  std::uint64_t epoch = 0;
  std::uint64_t steps = 0;
  std::optional<std::uint64_t> end_step = {};
  std::uint64_t rows = 0;
  double rows_per_second = 0;  // lately
  double wait_share = 0;       // so far
  std::uint64_t in_flight = 0;
  std::string verdict;
};

struct ProcessStatus {
  std::uint64_t process = 0;
  bool alive = true;
  double age_seconds = 0;  // since the file was written
  std::string command;
  unsigned threads = 0;
  std::uint64_t bytes_used = 0;
  std::uint64_t bytes_limit = 0;
  std::uint64_t resident_bytes = 0;
  std::vector<RunStatus> runs;
};

/// The processes that have a file in the folder, by number. Files that are damaged are left out.
/// Throws ConfigError if the folder cannot be read.
std::vector<ProcessStatus> read_statuses(const std::string& folder);
/// As a table.
std::string status_text(const std::vector<ProcessStatus>& processes);

}  // namespace penstock
