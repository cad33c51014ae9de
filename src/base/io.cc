#include "base/io.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace penstock {
namespace {

Failure io_failure(const std::string& what, const std::string& path, int error) {
  return Failure{fmt::format("{} {}: {}", what, path, std::strerror(error)), {}, {}, nullptr};
}

Failure cut_short(const std::string& path, std::uint64_t end, std::uint64_t offset,
                  std::uint64_t length) {
  return Failure{
      fmt::format("{} ends at byte {}, but {} bytes from {} are needed", path, end, length, offset),
      {},
      "check whether the file was cut short or replaced"};
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path, int flags = O_RDONLY)
      : number_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

class PosixIo final : public Io {
 public:
  Result<Bytes> read(const std::string& path, std::uint64_t offset, std::uint64_t length) override {
    const Descriptor file(path);
    if (file.number() < 0) return io_failure("cannot open", path, errno);
    // Looked at before memory is taken: an index that lies must not cost more than its file.
    struct stat facts{};
    if (::fstat(file.number(), &facts) != 0) return io_failure("cannot look at", path, errno);
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    if (S_ISREG(facts.st_mode) && (offset > size || length > size - offset))
      return cut_short(path, size, offset, length);
    Bytes bytes(length);
    std::uint64_t done = 0;
    while (done < length) {
      const ssize_t got = ::pread(file.number(), bytes.data() + done, length - done,
                                  static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return io_failure("cannot read", path, errno);
      if (got == 0) return cut_short(path, offset + done, offset, length);
      done += static_cast<std::uint64_t>(got);
    }
    return bytes;
  }

  Result<std::string> read_text(const std::string& path) override {
    const Descriptor file(path);
    if (file.number() < 0) return io_failure("cannot open", path, errno);
    std::string text;
    std::array<char, 4096> chunk{};
    while (true) {
      const ssize_t got = ::read(file.number(), chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return io_failure("cannot read", path, errno);
      if (got == 0) return text;
      text.append(chunk.data(), static_cast<std::size_t>(got));
    }
  }

  Result<void> append(const std::string& path, const std::string& text) override {
    const Descriptor file(path, O_WRONLY | O_CREAT | O_APPEND);
    if (file.number() < 0) return io_failure("cannot open", path, errno);
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t wrote = ::write(file.number(), text.data() + done, text.size() - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return io_failure("cannot write", path, errno);
      done += static_cast<std::size_t>(wrote);
    }
    return {};
  }
};

}  // namespace

Io& Io::real() {
  static PosixIo io;
  return io;
}

}  // namespace penstock
