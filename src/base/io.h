#pragma once
// Files are a seam: whatever the engine reads goes through an Io. Files of others are read with
// pread, never mapped, so that a file cut short under us is an error and not a SIGBUS.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace penstock {

using Bytes = std::vector<std::byte>;

class Io {
 public:
  virtual ~Io() = default;
  /// Exactly `length` bytes of `path` from `offset`; a file that ends before is a Failure.
  virtual Result<Bytes> read(const std::string& path, std::uint64_t offset,
                             std::uint64_t length) = 0;
  /// The whole file; for small ones, and for those whose size is not known before (as in /proc).
  virtual Result<std::string> read_text(const std::string& path) = 0;

  /// Adds `text` to the end of a file, which is made if it is not there.
  virtual Result<void> append(const std::string& path, const std::string& text) = 0;

  static Io& real();
};

}  // namespace penstock
