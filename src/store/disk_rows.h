#pragma once
// Rows in a folder. Any number of threads and processes may read and write one folder at the same
// time: each process appends to row files of its own.

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "penstock/io.h"
#include "store/row_file.h"
#include "store/row_format.h"
#include "store/row_index.h"
#include "store/row_store.h"
#include "store/rows_folder.h"

namespace penstock {

struct DiskRowsSettings {
  std::string title;  // for reports: cache("/data/cache")
  std::string folder;
  RowsHeader header;                     // of the folder; see open_header
  std::uint64_t bytes_max = UINT64_MAX;  // of all row files; rows beyond are not stored
  std::uint64_t ids_max = UINT64_MAX;    // sample ids are below this
  bool write = true;
  bool quiet = false;       // the caller tells why it stopped writing, and declares it complete
  std::uint32_t files = 1;  // how many files this process writes
  Io* io = &Io::real();
};

/// Rows of damaged frames are missing. A failure to write is reported once, and nothing is written
/// after it.
class DiskRows final : public RowStore {
 public:
  explicit DiskRows(DiskRowsSettings settings);
  /// Writes the indexes of its files.
  ~DiskRows() override;
  /// The store of this folder in this process: users of one folder share their rows.
  static std::shared_ptr<DiskRows> shared(const DiskRowsSettings& settings);

  using RowStore::get;
  std::vector<std::uint32_t> get(std::span<const std::uint64_t> numbers,
                                 std::span<const std::uint32_t> some,
                                 const BlockView& out) override;
  [[nodiscard]] bool has(std::uint64_t number) override { return index_.has(number); }
  [[nodiscard]] bool has_all() const override {
    return settings_.header.rows && index_.rows() >= *settings_.header.rows;
  }
  void put(std::span<const std::uint64_t> numbers, const BlockView& block) override;
  [[nodiscard]] bool full() const override { return !writing_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::string text() const override;

  [[nodiscard]] std::uint64_t rows() const { return index_.rows(); }
  [[nodiscard]] const ElementSpec& spec() const { return codec_.spec(); }
  /// Why it has stopped writing; empty while it writes.
  [[nodiscard]] std::string stopped_because();
  /// Flushes the rows to the disk and then declares the folder complete, with `rows` rows.
  Result<void> finish(std::uint64_t rows);
  /// The file that has row `number`, for errors.
  [[nodiscard]] std::string file_of(std::uint64_t number);
  /// Looks for rows that other processes have written.
  void refresh();

 private:
  struct RowFile {
    RowFile(std::string file_name, const std::string& path, const RowFileStart& file_start)
        : name(std::move(file_name)), handle(path), start(file_start) {}
    const std::string name;
    const FileHandle handle;
    const RowFileStart start;
    bool own = false;
    std::uint64_t scanned_to = kRowFileStartBytes;
    std::uint64_t seen_bytes = 0;
  };
  /// A file that this process writes.
  struct Writer {
    Mutex mutex;
    std::unique_ptr<FileAppender> out PENSTOCK_GUARDED_BY(mutex);
    std::uint64_t end PENSTOCK_GUARDED_BY(mutex) = 0;
    std::uint32_t file PENSTOCK_GUARDED_BY(mutex) = 0;
    std::uint64_t salt PENSTOCK_GUARDED_BY(mutex) = 0;
    int process PENSTOCK_GUARDED_BY(mutex) = 0;  // a fork must not write to the same file
  };
  struct Wanted {
    std::uint32_t row = 0;
    std::uint64_t number = 0;
    RowIndex::Found found;
  };
  class Reading;

  [[nodiscard]] RowFile& file(std::uint32_t number);
  void scan(bool first);
  void add_file(const FolderEntry& entry, const std::string* index_entry);
  void scan_file(RowFile& file, std::uint32_t number, std::uint64_t bytes, bool replace);
  void add_rows(std::uint32_t file, std::span<const StoredRow> rows, bool replace);
  [[nodiscard]] Writer& writer_of(std::uint64_t number);
  Result<void> open_writer(Writer& writer) PENSTOCK_REQUIRES(writer.mutex);
  void append(Writer& writer, std::span<const std::uint64_t> numbers, const BlockView& block,
              std::span<const std::uint32_t> rows);
  void stop_writing(const std::string& reason, bool is_failure);
  void publish_own_indexes();
  void declare_complete_if_so();
  Result<void> declare_complete(std::uint64_t rows);

  const DiskRowsSettings settings_;
  const RowCodec codec_;
  const std::uint64_t data_number_;
  RowIndex index_;
  std::deque<Writer> writers_;
  Mutex files_mutex_;
  std::deque<RowFile> files_ PENSTOCK_GUARDED_BY(files_mutex_);
  std::map<std::string, std::uint32_t> known_ PENSTOCK_GUARDED_BY(files_mutex_);
  std::uint64_t next_sequence_ PENSTOCK_GUARDED_BY(files_mutex_) = 0;
  std::string stopped_because_ PENSTOCK_GUARDED_BY(files_mutex_);
  std::atomic<std::uint64_t> bytes_{0};   // of all files, also of other processes
  std::atomic<std::uint64_t> misses_{0};  // since the last refresh
  std::atomic<bool> refreshing_{false};
  std::atomic<bool> writing_;
  std::atomic<bool> complete_;
};

}  // namespace penstock
