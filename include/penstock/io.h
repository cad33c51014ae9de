#pragma once
// Files are injected: everything the engine reads goes through an Io. Files are read with pread,
// never mapped, so that a truncated file is an error and not a SIGBUS.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/detail/unwritten_allocator.h>
#include <penstock/result.h>

namespace penstock {

/// The bytes of a file. `resize` leaves new bytes uninitialized.
using Bytes = std::vector<std::byte, detail::UnwrittenAllocator<std::byte>>;

/// A folder that must contain a file when it is opened, even if the file was replaced after
/// listing.
struct FileRoot {
  std::string given;  // the prefix of paths
  std::string real;   // the same without links; empty: resolved at each read
  bool links = true;  // false: no links below it
};

/// How to read a whole file.
struct WholeFile {
  std::uint64_t bytes_max;                 // a larger file fails before memory is allocated
  std::optional<std::uint64_t> size = {};  // the size it must have
  const FileRoot* within = nullptr;
};

/// An entry of a folder. Links are followed.
struct FolderEntry {
  enum class Kind : std::uint8_t { file, folder, other, broken };  // broken: a dangling link
  std::string name = {};
  Kind kind = Kind::file;
  bool link = false;
  std::uint64_t bytes = 0;
  /// Equal for two names of one folder.
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t modified_ns = 0;  // when the content was last changed, since 1970
};

/// A file of which parts are read again and again. Io::real() keeps some of them open between
/// reads. Thread-safe.
class FileHandle {
 public:
  /// `bytes` and `modified_ns` are those that the file must have when it is opened: a file that was
  /// changed since then is not read.
  FileHandle(std::string path, std::uint64_t bytes, std::int64_t modified_ns);
  /// A file that still grows: it may have any size.
  explicit FileHandle(std::string path);
  ~FileHandle();
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::int64_t modified_ns() const { return modified_ns_; }
  [[nodiscard]] bool grows() const { return bytes_ == kGrows; }

  struct Slot;  // the descriptor, while it is open
  [[nodiscard]] const std::shared_ptr<Slot>& slot() const { return slot_; }

 private:
  static constexpr std::uint64_t kGrows = UINT64_MAX;
  const std::string path_;
  const std::uint64_t bytes_;
  const std::int64_t modified_ns_;
  const std::shared_ptr<Slot> slot_;
};

/// A new file that grows at its end. Used by one thread at a time.
class FileAppender {
 public:
  FileAppender() = default;
  virtual ~FileAppender() = default;
  FileAppender(const FileAppender&) = delete;
  FileAppender& operator=(const FileAppender&) = delete;
  /// Appends the parts in this order. If that fails, the file has its former length again.
  virtual Result<void> append(std::span<const std::string_view> parts) = 0;
  /// Returns once the content is on the disk.
  virtual Result<void> flush() = 0;
};

/// Held by at most one process until it is destroyed, or the process ends in any way.
class FileLock {
 public:
  FileLock() = default;
  virtual ~FileLock() = default;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
};

/// Implementations must be thread-safe: the threads of a loader read at the same time. Every
/// function blocks until it is done and returns errors as a Failure instead of throwing them. A
/// Failure says whether it may be transient, and is then retried: EIO and similar errors are; a
/// file that is missing, not permitted, a folder or of a different size is not.
class Io {
 public:
  virtual ~Io() = default;
  /// Reads exactly `length` bytes of `path` from `offset`; a Failure if the file ends before.
  virtual Result<Bytes> read(const std::string& path, std::uint64_t offset,
                             std::uint64_t length) = 0;
  /// Reads out.size() bytes from `offset`; a Failure if the file ends before or was changed. By
  /// default calls `read`.
  virtual Result<void> read_at(const FileHandle& file, std::uint64_t offset,
                               std::span<std::byte> out);
  /// Like `read_at`, into several buffers that follow each other in the file. By default reads them
  /// one by one.
  virtual Result<void> read_parts(const FileHandle& file, std::uint64_t offset,
                                  std::span<const std::span<std::byte>> parts);
  /// Reads the whole file if it meets `wanted`.
  virtual Result<Bytes> read_whole(const std::string& path, const WholeFile& wanted) = 0;
  /// Reads the whole file, of at most `bytes_max` bytes, even if its size is unknown (/proc).
  virtual Result<std::string> read_text(const std::string& path, std::uint64_t bytes_max) = 0;

  /// The entries of a folder, in any order, without "." and "..".
  virtual Result<std::vector<FolderEntry>> list(const std::string& folder) = 0;
  /// The type of `path`; its name is left empty.
  virtual Result<FolderEntry> look(const std::string& path) = 0;
  /// `path` without links and dots.
  virtual Result<std::string> real_path(const std::string& path) = 0;

  /// Appends `text` to a file; creates it if needed.
  virtual Result<void> append(const std::string& path, const std::string& text) = 0;
  /// Writes a file under another name, flushes it to disk, and then renames it: readers of `path`
  /// see the old file or the new one, complete. Any number of threads, processes and hosts may
  /// write the same file.
  virtual Result<void> publish(const std::string& path, std::string_view content) = 0;

  // Only for folders that are written to; by default a Failure.
  /// Creates a folder, and those above it; a no-op if it exists.
  virtual Result<void> create_folder(const std::string& folder);
  /// Creates a file; a Failure if it exists.
  virtual Result<std::unique_ptr<FileAppender>> create(const std::string& path);
  /// Gives a file another name, in place of the file that had it; returns once that is on the disk.
  /// Removes the file if that fails. A failure to flush leaves it under its new name.
  virtual Result<void> rename(const std::string& from, const std::string& to);
  /// Removes a file; a no-op if there is none.
  virtual Result<void> remove(const std::string& path);
  /// Locks `path`, a file that is created if needed and stays; null if it is locked.
  virtual Result<std::unique_ptr<FileLock>> try_lock(const std::string& path);

  /// The file system.
  static Io& real();
};

}  // namespace penstock
