#pragma once
// An open file of the operating system, and what went wrong with one.

#include <fcntl.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <string>

#include "penstock/result.h"

namespace penstock {

/// "WHAT PATH: REASON"; transient if a retry may help. `error` is an errno.
Failure io_failure(const std::string& what, const std::string& path, int error);

/// Closed by its destructor.
class Descriptor {
 public:
  /// On failure its number is negative, and errno says why.
  explicit Descriptor(const std::string& path, int flags = O_RDONLY);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_ = -1;
};

/// Removes `bytes` bytes, and empty parts after them, from the front of `parts`.
void drop_front(std::span<iovec>& parts, std::size_t bytes);
/// How many of the parts one call of the system takes.
int parts_at_once(std::span<const iovec> parts);

}  // namespace penstock
