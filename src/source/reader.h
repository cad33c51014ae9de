#pragma once
// Performs the reads of a thread: directly from the file system, or from what a run has fetched
// already.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "penstock/io.h"
#include "penstock/result.h"

namespace penstock {

class Source;

/// The largest file that is read whole unless another limit is set: 1 GiB.
inline constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 30;

/// Bytes that a row needs.
struct Read {
  std::string object;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  bool whole = false;  // all of the object, which must be `length` bytes long
  // Of whole reads
  std::uint64_t bytes_max = kFileBytesMax;
  std::shared_ptr<const FileRoot> within = {};
  // Of reads through a handle, whose path is `object`
  std::shared_ptr<const FileHandle> file = {};
};

/// Which row a read is for.
struct ReadKey {
  const Source* source = nullptr;
  std::uint64_t number = 0;
  bool operator==(const ReadKey&) const = default;
};

/// A read that will be needed.
struct PlannedRead {
  ReadKey key;
  Read read;
};

/// Thread-safe.
class Reader {
 public:
  virtual ~Reader() = default;
  virtual Result<Bytes> get(const Read& read, const ReadKey& key) = 0;
  /// Reads out.size() bytes of `file` from `offset`; cheaper than `get` for small reads.
  virtual Result<void> read_at(const FileHandle& file, std::uint64_t offset,
                               std::span<std::byte> out, const ReadKey& key) = 0;
  /// True if rows may have been read ahead: each row must then be read by itself, with its key.
  [[nodiscard]] virtual bool by_row() const { return false; }
  /// Reads a file by its path, of any size up to `bytes_max`.
  virtual Result<Bytes> get_file(const std::string& path, std::uint64_t bytes_max) = 0;
};

/// Performs each read when it is asked for, through the real Io.
Reader& direct_reader();

/// Performs `read` now, through `io`.
Result<Bytes> read_now(Io& io, const Read& read);

}  // namespace penstock
