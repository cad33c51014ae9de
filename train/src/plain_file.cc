// tested in train/tests/checkpoint_test.cc
#include "plain_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/fault.h"
#include "base/printable.h"

namespace penstock::train {
namespace fs = std::filesystem;
namespace {

constexpr const char* kDisk = "is the disk full, or the folder not writable?";

class OpenFile {
 public:
  OpenFile(const std::string& path, int flags) {
    do {
      errno = 0;
      number_ = PENSTOCK_FAULT("checkpoint.open_interrupted")
                    ? (errno = EINTR, -1)
                    : ::open(path.c_str(), flags | O_CLOEXEC);
    } while (number_ < 0 && errno == EINTR);
  }
  ~OpenFile() {
    if (number_ >= 0) ::close(number_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_ = -1;
};

[[noreturn]] void throw_unread(const std::string& path, int error) {
  const std::string text = fmt::format("{}: {}", printable(path), std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) throw StateError(text);
  if (error == EACCES || error == EPERM || error == ELOOP)
    throw DeniedError(text, {}, "give this user permission to read it");
  throw IoError(text, {}, "try again: the error may be transient");
}

}  // namespace

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string("/\0", 2)) == std::string::npos;
}

std::string read_plain_file(const std::string& path, std::optional<std::uint64_t> size,
                            std::uint64_t bytes_max) {
  if (PENSTOCK_FAULT("checkpoint.denied")) throw_unread(path, EACCES);
  if (PENSTOCK_FAULT("checkpoint.io_error")) throw_unread(path, EIO);
  // Without O_NONBLOCK a pipe would block forever.
  const OpenFile file(path, O_RDONLY | O_NONBLOCK);
  if (file.number() < 0) throw_unread(path, errno);
  struct stat facts{};
  if (::fstat(file.number(), &facts) != 0) throw_unread(path, errno);
  if (!S_ISREG(facts.st_mode))
    throw StateError(fmt::format("{} is not a regular file", printable(path)));
  const auto bytes = static_cast<std::uint64_t>(facts.st_size);
  if (size && bytes != *size)
    throw StateError(
        fmt::format("{} has {} bytes, it was written with {}", printable(path), bytes, *size));
  if (bytes > bytes_max)
    throw StateError(fmt::format("{} has {} bytes, more than the {} it may have", printable(path),
                                 bytes, bytes_max));
  std::string text(bytes, '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(file.number(), text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_unread(path, errno);
    if (got == 0)
      throw StateError(fmt::format("{} ends at byte {} of {}", printable(path), done, bytes));
    done += static_cast<std::size_t>(got);
  }
  return text;
}

void sync_folder(const std::string& folder) {
  const OpenFile open(folder, O_RDONLY | O_DIRECTORY);
  const bool fails = PENSTOCK_FAULT("checkpoint.sync_folder");
  if (open.number() >= 0 && !fails && ::fsync(open.number()) == 0) return;
  const int error = fails ? EIO : errno;
  if (error == EINVAL || error == ENOTSUP) return;  // a file system that cannot sync folders
  throw IoError(fmt::format("folder {} cannot be flushed to disk: {}", printable(folder),
                            std::strerror(error)),
                {}, kDisk);
}

void make_folders(const std::string& folder) {
  const fs::path path = fs::path(folder).lexically_normal();
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return;
  // "a/b/" has an empty last part.
  const fs::path whole = path.has_filename() ? path : path.parent_path();
  const fs::path parent = whole.parent_path();
  make_folders(parent.string());
  if (!fs::create_directory(whole, error) && error)
    throw IoError(
        fmt::format("folder {} cannot be created: {}", printable(whole.string()), error.message()),
        {}, kDisk);
  sync_folder(parent.empty() ? "." : parent.string());
}

}  // namespace penstock::train
