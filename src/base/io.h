#pragma once
// Files are injected: everything the engine reads goes through an Io. Files are read with pread,
// never mapped, so that a truncated file is an error and not a SIGBUS.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace penstock {

/// Default-initializes, so that memory that a read will fill is not zeroed first.
template <typename T>
struct UnwrittenAllocator : std::allocator<T> {
  template <typename U>
  struct rebind {
    using other = UnwrittenAllocator<U>;
  };
  template <typename U, typename... Values>
  void construct(U* place, Values&&... values) {
    if constexpr (sizeof...(Values) == 0)
      ::new (static_cast<void*>(place)) U;
    else
      ::new (static_cast<void*>(place)) U(std::forward<Values>(values)...);
  }
};
using Bytes = std::vector<std::byte, UnwrittenAllocator<std::byte>>;

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

/// Thread-safe. A Failure says whether it may be transient: EIO and similar errors are; a file that
/// is missing, not permitted, a folder or of a different size is not.
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

  static Io& real();
};

}  // namespace penstock
