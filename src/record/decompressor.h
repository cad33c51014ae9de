#pragma once
// Compressed files, read from their beginning with little memory.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "penstock/result.h"

namespace penstock {

enum class Compression : std::uint8_t { none, gzip, zlib, zstd };

/// "gzip"
std::string_view compression_word(Compression kind);

/// Determined by the first bytes of a file; four are enough. Those of zlib may stand in any file by
/// chance, so it is found only if `zlib_allowed`.
Compression compression_of(std::string_view first_bytes, bool zlib_allowed);

/// Whether this build has the library for it.
bool can_decompress(Compression kind);

/// Decompresses one file. A file of gzip or zstd may consist of several members (frames), and zeros
/// may follow the members of gzip. Needs 40 KB of memory for gzip and zlib, and up to 128 MiB for
/// zstd, as the file asks; a file that asks for more fails. Used by one thread.
class Decompressor {
 public:
  /// Throws ConfigError if this build cannot: `can_decompress`.
  static std::unique_ptr<Decompressor> make(Compression kind);
  virtual ~Decompressor() = default;

  struct Progress {
    std::size_t read = 0;
    std::size_t written = 0;
  };
  /// Reads from `in`, which follows what was read before, and writes to `out`, until one of them is
  /// used up. If `out` was filled there may be more to write, also without input: the input is used
  /// up only when `written` is less than `out` has room for. A failure says what is wrong and at
  /// which byte of the compressed file; after it nothing may be called.
  virtual Result<Progress> run(std::span<const std::byte> in, std::span<std::byte> out) = 0;
  /// Called at the end of the file, when the input is used up. Fails if the data ends early.
  virtual Result<void> finish() = 0;
};

}  // namespace penstock
