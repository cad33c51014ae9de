#pragma once
// Files are injected: everything the engine reads goes through an Io. Files are read with pread,
// never mapped, so that a truncated file is an error and not a SIGBUS.

#include <cstddef>
#include <cstdint>
#include <optional>
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

  /// The file system.
  static Io& real();
};

}  // namespace penstock
