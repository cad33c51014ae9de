// tested in src/base/io_test.cc
#include "base/descriptor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/printable.h"

namespace penstock {
namespace {

/// Errors that may not occur on a retry.
bool may_pass(int error) {
  constexpr std::array kPassing{EIO,    EAGAIN, EINTR,     EBUSY,     ETIMEDOUT,    ESTALE,
                                EMFILE, ENFILE, ENOMEM,    ENOBUFS,   ECONNRESET,   ENETDOWN,
                                EPROTO, ENOLCK, EREMOTEIO, EHOSTDOWN, EHOSTUNREACH, ENETUNREACH};
  return std::ranges::find(kPassing, error) != kPassing.end();
}

}  // namespace

Failure io_failure(const std::string& what, const std::string& path, int error) {
  Failure failure{fmt::format("{} {}: {}", what, printable(path), std::strerror(error))};
  if (may_pass(error)) failure.kind = Failure::Kind::transient;
  return failure;
}

Descriptor::Descriptor(const std::string& path, int flags) {
  do {
    number_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (number_ < 0 && errno == EINTR);
}

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

void drop_front(std::span<iovec>& parts, std::size_t bytes) {
  while (!parts.empty() && bytes >= parts.front().iov_len) {
    bytes -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (bytes == 0 || parts.empty()) return;
  parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + bytes;
  parts.front().iov_len -= bytes;
}

int parts_at_once(std::span<const iovec> parts) {
  return static_cast<int>(std::min<std::size_t>(parts.size(), IOV_MAX));
}

}  // namespace penstock
