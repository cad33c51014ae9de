#pragma once
// Files are a seam: whatever the engine reads goes through an Io. Files of others are read with
// pread, never mapped, so that a file cut short under us is an error and not a SIGBUS.

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

/// Leaves memory as it is where no value is given: what a read fills need not be zeroed first.
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

/// A folder that files must lie in when they are opened, whatever was put in their place since.
struct FileRoot {
  std::string given;  // as paths begin
  std::string real;   // the same without links; empty: found at each read
  bool links = true;  // false: no link on the way below it
};

/// How a whole file is read.
struct WholeFile {
  std::uint64_t bytes_max;                 // a larger file is refused before memory is taken
  std::optional<std::uint64_t> size = {};  // the bytes it must have
  const FileRoot* within = nullptr;
};

/// What stands in a folder under one name. Links are looked through.
struct FolderEntry {
  enum class Kind : std::uint8_t { file, folder, other, broken };  // broken: leads nowhere
  std::string name = {};
  Kind kind = Kind::file;
  bool link = false;
  std::uint64_t bytes = 0;
  /// The same for two names of one folder.
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

/// Thread-safe. A Failure says whether it may pass: EIO and the like do, a file that is not there,
/// may not be read, is a folder or has another size does not.
class Io {
 public:
  virtual ~Io() = default;
  /// Exactly `length` bytes of `path` from `offset`; a file that ends before is a Failure.
  virtual Result<Bytes> read(const std::string& path, std::uint64_t offset,
                             std::uint64_t length) = 0;
  /// The whole file, if it is as `wanted` says.
  virtual Result<Bytes> read_whole(const std::string& path, const WholeFile& wanted) = 0;
  /// The whole file, of at most `bytes_max` bytes; also where the size is not known before (/proc).
  virtual Result<std::string> read_text(const std::string& path, std::uint64_t bytes_max) = 0;

  /// What is in a folder, in any order, without "." and "..".
  virtual Result<std::vector<FolderEntry>> list(const std::string& folder) = 0;
  /// What `path` is; its name is left empty.
  virtual Result<FolderEntry> look(const std::string& path) = 0;
  /// `path` without links and dots.
  virtual Result<std::string> real_path(const std::string& path) = 0;

  /// Adds `text` to the end of a file, which is made if it is not there.
  virtual Result<void> append(const std::string& path, const std::string& text) = 0;
  /// Writes a file under another name, brings it to disk, and then gives it its name: whoever opens
  /// `path` finds the old file or the new one, whole. Any number of threads, processes and hosts
  /// may write the same file.
  virtual Result<void> publish(const std::string& path, std::string_view content) = 0;

  static Io& real();
};

}  // namespace penstock
