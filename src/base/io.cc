#include "penstock/io.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/fault.h"
#include "base/printable.h"

namespace penstock {
namespace {

constexpr const char* kReplaced = "check whether the file was truncated or replaced";

/// Errors that may not occur on a retry.
bool may_pass(int error) {
  constexpr std::array kPassing{EIO,    EAGAIN, EINTR,     EBUSY,     ETIMEDOUT,    ESTALE,
                                EMFILE, ENFILE, ENOMEM,    ENOBUFS,   ECONNRESET,   ENETDOWN,
                                EPROTO, ENOLCK, EREMOTEIO, EHOSTDOWN, EHOSTUNREACH, ENETUNREACH};
  return std::ranges::find(kPassing, error) != kPassing.end();
}

Failure io_failure(const std::string& what, const std::string& path, int error) {
  Failure failure{fmt::format("{} {}: {}", what, printable(path), std::strerror(error))};
  if (may_pass(error)) failure.kind = Failure::Kind::transient;
  return failure;
}

Failure cut_short(const std::string& path, std::uint64_t end, std::uint64_t offset,
                  std::uint64_t length) {
  return Failure{fmt::format("{} ends at byte {}, but {} bytes from {} are needed", printable(path),
                             end, length, offset),
                 {},
                 kReplaced};
}

Failure other_size(const std::string& path, const std::string& has, std::uint64_t listed) {
  return Failure{
      fmt::format("{} has {} bytes, it had {} when it was listed", printable(path), has, listed),
      {},
      kReplaced};
}

Failure too_large(const std::string& path, const std::string& has, std::uint64_t most) {
  return Failure{
      fmt::format("{} has {} bytes, more than the limit of {}", printable(path), has, most),
      {},
      "raise bytes_max if such files are meant to be read"};
}

Failure led_away(const std::string& path, const std::string& real, const FileRoot& root) {
  return Failure{
      fmt::format("{} leads to {}, {}", printable(path), printable(real),
                  root.links ? fmt::format("outside of {}", printable(root.given))
                             : "and links are not followed"),
      {},
      "a link took its place after the folder was listed: list it again, or follow links"};
}

FolderEntry entry_of(const struct stat& facts) {
  FolderEntry entry;
  entry.kind = S_ISREG(facts.st_mode)   ? FolderEntry::Kind::file
               : S_ISDIR(facts.st_mode) ? FolderEntry::Kind::folder
                                        : FolderEntry::Kind::other;
  entry.bytes = static_cast<std::uint64_t>(std::max<off_t>(0, facts.st_size));
  entry.device = facts.st_dev;
  entry.inode = facts.st_ino;
  return entry;
}

/// The type of `name` in the open folder. Checks the name itself first, to detect a link.
Result<FolderEntry> look_at(int folder, const char* name, const std::string& path) {
  struct stat facts{};
  if (::fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) != 0)
    return io_failure("cannot stat", path, errno);
  const bool link = S_ISLNK(facts.st_mode);
  FolderEntry entry;
  if (link && ::fstatat(folder, name, &facts, 0) != 0) {
    entry.kind = FolderEntry::Kind::broken;
  } else {
    entry = entry_of(facts);
  }
  entry.link = link;
  return entry;
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path, int flags = O_RDONLY) {
    do {
      number_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    } while (number_ < 0 && errno == EINTR);
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_ = -1;
};

/// The path of an open file, without links; `path` is the one it was opened with.
std::optional<std::string> real_path_of(const Descriptor& file, const std::string& path) {
  std::array<char, PATH_MAX> real{};
  const std::string self = fmt::format("/proc/self/fd/{}", file.number());
  const ssize_t size = ::readlink(self.c_str(), real.data(), real.size());
  if (size > 0 && static_cast<std::size_t>(size) < real.size())
    return std::string(real.data(), static_cast<std::size_t>(size));
  if (::realpath(path.c_str(), real.data()) == nullptr) return std::nullopt;  // there is no /proc
  return std::string(real.data());
}

/// A Failure if the open file is not below the root. Checked after opening, so that nothing can
/// change in between.
Result<void> check_within(const Descriptor& file, const std::string& path, const FileRoot& root) {
  std::string inside = root.real;
  if (inside.empty()) {
    std::array<char, PATH_MAX> real{};
    if (::realpath(root.given.c_str(), real.data()) == nullptr)
      return io_failure("cannot find", root.given, errno);
    inside = real.data();
  }
  if (!inside.ends_with('/')) inside += '/';
  const auto real = real_path_of(file, path);
  if (!real) return io_failure("cannot find", path, errno);
  std::string_view name = std::string_view(path).substr(std::min(path.size(), root.given.size()));
  while (name.starts_with('/')) name.remove_prefix(1);
  const bool fits = root.links ? real->starts_with(inside) : *real == inside + std::string(name);
  if (!fits) return led_away(path, *real, root);
  return {};
}

/// An unpredictable name in the same folder, for a temporary file.
Result<std::string> draft_name(const std::string& path) {
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) < 0)
    if (errno != EINTR) return io_failure("cannot create a temporary name for", path, errno);
  return fmt::format("{}.{:016x}.tmp", path, number);
}

/// Reads until `length` bytes have arrived or the file ends; returns the number of bytes.
Result<std::uint64_t> read_into(const Descriptor& file, const std::string& path, std::byte* data,
                                std::uint64_t length, std::uint64_t offset) {
  std::uint64_t done = 0;
  while (done < length) {
    const ssize_t got =
        ::pread(file.number(), data + done, length - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_failure("cannot read", path, errno);
    if (got == 0) break;
    done += static_cast<std::uint64_t>(got);
  }
  return done;
}

Result<void> write_all(const Descriptor& file, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(file.number(), text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return io_failure("cannot write", path, errno);
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

class PosixIo final : public Io {
 public:
  Result<Bytes> read(const std::string& path, std::uint64_t offset, std::uint64_t length) override {
    const Descriptor file(path);
    if (file.number() < 0) return io_failure("cannot open", path, errno);
    // Checked before memory is allocated: a wrong index must not cost more than the size of its
    // file.
    struct stat facts{};
    if (::fstat(file.number(), &facts) != 0) return io_failure("cannot stat", path, errno);
    const auto size = static_cast<std::uint64_t>(facts.st_size);
    if (S_ISREG(facts.st_mode) && (offset > size || length > size - offset))
      return cut_short(path, size, offset, length);
    Bytes bytes(length);
    const auto done = read_into(file, path, bytes.data(), length, offset);
    if (!done) return done.failure();
    if (*done < length) return cut_short(path, offset + *done, offset, length);
    return bytes;
  }

  Result<Bytes> read_whole(const std::string& path, const WholeFile& wanted) override {
    if (wanted.size && *wanted.size > wanted.bytes_max)
      return too_large(path, fmt::format("{}", *wanted.size), wanted.bytes_max);
    if (PENSTOCK_FAULT("read.descriptors")) return io_failure("cannot open", path, EMFILE);
    const bool no_links = wanted.within != nullptr && !wanted.within->links;
    // Without O_NONBLOCK, a pipe in place of the file would block forever.
    const Descriptor file(path, O_RDONLY | O_NONBLOCK | (no_links ? O_NOFOLLOW : 0));
    if (file.number() < 0 && errno == ELOOP && no_links)
      return led_away(path, "another place", *wanted.within);
    if (file.number() < 0) return io_failure("cannot open", path, errno);
    if (wanted.within != nullptr)
      if (auto inside = check_within(file, path, *wanted.within); !inside) return inside.failure();
    const auto there = size_of(file, path);
    if (!there) return there.failure();
    const std::uint64_t now = *there;
    if (wanted.size && now != *wanted.size)
      return other_size(path, fmt::format("{}", now), *wanted.size);
    if (now > wanted.bytes_max) return too_large(path, fmt::format("{}", now), wanted.bytes_max);
    // Reads one byte more than expected, to notice a file that grows.
    Bytes bytes(now + 1);
    const auto done = read_into(file, path, bytes.data(), now + 1, 0);
    if (!done) return done.failure();
    if (*done > now) return other_size(path, fmt::format("more than {}", now), now);
    if (*done < now) return cut_short(path, *done, 0, now);
    bytes.resize(now);
    return bytes;
  }

  Result<std::string> read_text(const std::string& path, std::uint64_t bytes_max) override {
    const Descriptor file(path, O_RDONLY | O_NONBLOCK);
    if (file.number() < 0) return io_failure("cannot open", path, errno);
    const auto there = size_of(file, path);
    if (!there) return there.failure();
    if (*there > bytes_max) return too_large(path, fmt::format("{}", *there), bytes_max);
    std::string text;
    text.reserve(*there);
    std::array<char, 4096> chunk{};
    while (true) {
      const ssize_t got = ::read(file.number(), chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return io_failure("cannot read", path, errno);
      if (got == 0) return text;
      if (static_cast<std::uint64_t>(got) > bytes_max - text.size())
        return too_large(path, fmt::format("more than {}", text.size()), bytes_max);
      text.append(chunk.data(), static_cast<std::size_t>(got));
    }
  }

  Result<void> append(const std::string& path, const std::string& text) override {
    const Descriptor file(path, O_WRONLY | O_CREAT | O_APPEND);
    if (file.number() < 0) return io_failure("cannot open", path, errno);
    return write_all(file, path, text);
  }

  Result<std::vector<FolderEntry>> list(const std::string& folder) override {
    const auto close = [](DIR* open) { ::closedir(open); };
    const std::unique_ptr<DIR, decltype(close)> open(::opendir(folder.c_str()), close);
    if (!open) return io_failure("cannot list", folder, errno);
    std::vector<FolderEntry> entries;
    while (true) {
      errno = 0;
      const dirent* const found = ::readdir(open.get());
      if (found == nullptr && errno != 0) return io_failure("cannot list", folder, errno);
      if (found == nullptr) return entries;
      const std::string_view name = found->d_name;
      if (name == "." || name == "..") continue;
      auto entry = look_at(::dirfd(open.get()), found->d_name, folder);
      if (!entry) {  // removed in the meantime, or the folder may be listed but not entered
        if (::faccessat(::dirfd(open.get()), ".", X_OK, 0) != 0)
          return io_failure("cannot enter", folder, errno);
        continue;
      }
      entry->name = name;
      entries.push_back(std::move(*entry));
    }
  }

  Result<FolderEntry> look(const std::string& path) override {
    return look_at(AT_FDCWD, path.c_str(), path);
  }

  Result<std::string> real_path(const std::string& path) override {
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                           &std::free);
    if (!real) return io_failure("cannot find", path, errno);
    return std::string(real.get());
  }

  Result<void> publish(const std::string& path, std::string_view content) override {
    const auto draft = draft_name(path);
    if (!draft) return draft.failure();
    const std::string& before = *draft;
    auto done = write_new(before, content);
    if (done && ::rename(before.c_str(), path.c_str()) != 0) {
      done = io_failure("cannot write", path, errno);
      ::unlink(before.c_str());
    }
    if (!done) return done;
    const std::size_t slash = path.rfind('/');
    const Descriptor folder(slash == std::string::npos ? "." : path.substr(0, slash + 1));
    if (folder.number() < 0 || ::fsync(folder.number()) != 0)
      return io_failure("cannot flush to disk", path, errno);
    return {};
  }

 private:
  /// The status of an open file; a Failure if it is not a regular file.
  static Result<std::uint64_t> size_of(const Descriptor& file, const std::string& path) {
    struct stat facts{};
    if (::fstat(file.number(), &facts) != 0) return io_failure("cannot stat", path, errno);
    if (S_ISDIR(facts.st_mode)) return Failure{fmt::format("{} is a folder", printable(path))};
    if (!S_ISREG(facts.st_mode)) return Failure{fmt::format("{} is not a file", printable(path))};
    return static_cast<std::uint64_t>(facts.st_size);
  }

  /// Writes a new file; removes it on failure.
  static Result<void> write_new(const std::string& path, std::string_view content) {
    const Descriptor file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
    if (file.number() < 0) return io_failure("cannot write", path, errno);
    auto done = write_all(file, path, content);
    if (done && ::fsync(file.number()) != 0) done = io_failure("cannot flush to disk", path, errno);
    if (!done) ::unlink(path.c_str());
    return done;
  }
};

}  // namespace

Io& Io::real() {
  static PosixIo io;
  return io;
}

}  // namespace penstock
