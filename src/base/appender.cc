// tested in src/base/io_test.cc
#include "base/appender.h"

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/fault.h"

namespace penstock {
namespace {

class PosixAppender final : public FileAppender {
 public:
  explicit PosixAppender(const std::string& path)
      : path_(path), file_(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW) {}
  [[nodiscard]] bool open() const { return file_.number() >= 0; }

  Result<void> append(std::span<const std::string_view> parts) override {
    std::vector<iovec> vectors;
    vectors.reserve(parts.size());
    for (const std::string_view part : parts)
      if (!part.empty()) vectors.push_back({const_cast<char*>(part.data()), part.size()});
    std::span<iovec> left = vectors;
    std::uint64_t end = end_;
    while (!left.empty()) {
      ssize_t wrote = -1;
      errno = ENOSPC;
      if (!PENSTOCK_FAULT("append.full"))
        wrote =
            ::pwritev(file_.number(), left.data(), parts_at_once(left), static_cast<off_t>(end));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) {
        const int error = errno;
        // What was appended must not look like a part that is still to be completed.
        if (end > end_) (void)!::ftruncate(file_.number(), static_cast<off_t>(end_));
        return io_failure("cannot write", path_, error);
      }
      end += static_cast<std::uint64_t>(wrote);
      drop_front(left, static_cast<std::size_t>(wrote));
    }
    end_ = end;
    return {};
  }

  Result<void> flush() override {
    if (::fsync(file_.number()) != 0) return io_failure("cannot flush to disk", path_, errno);
    return {};
  }

 private:
  const std::string path_;
  const Descriptor file_;
  std::uint64_t end_ = 0;
};

class PosixLock final : public FileLock {
 public:
  explicit PosixLock(const std::string& path) : file_(path, O_RDWR | O_CREAT | O_NOFOLLOW) {}
  [[nodiscard]] int number() const { return file_.number(); }

 private:
  const Descriptor file_;
};

}  // namespace

Result<std::unique_ptr<FileAppender>> create_appender(const std::string& path) {
  auto file = std::make_unique<PosixAppender>(path);
  if (!file->open()) return io_failure("cannot create", path, errno);
  return std::unique_ptr<FileAppender>(std::move(file));
}

Result<std::unique_ptr<FileLock>> try_file_lock(const std::string& path) {
  auto lock = std::make_unique<PosixLock>(path);
  if (lock->number() < 0) return io_failure("cannot open", path, errno);
  while (::flock(lock->number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::unique_ptr<FileLock>();
    if (errno != EINTR) return io_failure("cannot lock", path, errno);
  }
  return std::unique_ptr<FileLock>(std::move(lock));
}

}  // namespace penstock
