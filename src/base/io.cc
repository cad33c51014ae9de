#include "penstock/io.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/appender.h"
#include "base/descriptor.h"
#include "base/fault.h"
#include "base/mutex.h"
#include "base/printable.h"

namespace penstock {
namespace {

constexpr const char* kReplaced = "check whether the file was truncated or replaced";

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

std::int64_t modified_ns_of(const struct stat& facts) {
  return std::int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec;
}

FolderEntry entry_of(const struct stat& facts) {
  FolderEntry entry;
  entry.kind = S_ISREG(facts.st_mode)   ? FolderEntry::Kind::file
               : S_ISDIR(facts.st_mode) ? FolderEntry::Kind::folder
                                        : FolderEntry::Kind::other;
  entry.bytes = static_cast<std::uint64_t>(std::max<off_t>(0, facts.st_size));
  entry.device = facts.st_dev;
  entry.inode = facts.st_ino;
  entry.modified_ns = modified_ns_of(facts);
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

}  // namespace

struct FileHandle::Slot {
  Mutex mutex;
  std::shared_ptr<const Descriptor> open PENSTOCK_GUARDED_BY(mutex);
  std::atomic<bool> used = false;  // since the clock's hand passed
  std::atomic<std::uint32_t> reads = 0;
};

FileHandle::FileHandle(std::string path, std::uint64_t bytes, std::int64_t modified_ns)
    : path_(std::move(path)),
      bytes_(bytes),
      modified_ns_(modified_ns),
      slot_(std::make_shared<Slot>()) {}
FileHandle::FileHandle(std::string path) : FileHandle(std::move(path), kGrows, 0) {}
FileHandle::~FileHandle() = default;

Result<void> Io::read_at(const FileHandle& file, std::uint64_t offset, std::span<std::byte> out) {
  auto bytes = read(file.path(), offset, out.size());
  if (!bytes) return std::move(bytes.failure());
  std::ranges::copy(*bytes, out.begin());
  return {};
}

Result<void> Io::read_parts(const FileHandle& file, std::uint64_t offset,
                            std::span<const std::span<std::byte>> parts) {
  for (const std::span<std::byte> part : parts) {
    if (auto done = read_at(file, offset, part); !done) return done;
    offset += part.size();
  }
  return {};
}

namespace {

Failure read_only(const std::string& path) {
  return Failure{fmt::format("{} cannot be written: this Io only reads", printable(path))};
}

}  // namespace

Result<void> Io::create_folder(const std::string& folder) {
  return read_only(folder);
}
Result<std::unique_ptr<FileAppender>> Io::create(const std::string& path) {
  return read_only(path);
}
Result<void> Io::rename(const std::string& from, const std::string&) {
  return read_only(from);
}
Result<void> Io::remove(const std::string& path) {
  return read_only(path);
}
Result<std::unique_ptr<FileLock>> Io::try_lock(const std::string& path) {
  return read_only(path);
}

namespace {

/// The handles that are open, at most a quarter of the descriptors that the process may have. When
/// another one is opened, one that was not used lately is closed. Thread-safe.
class OpenHandles {
 public:
  void add(const std::shared_ptr<FileHandle::Slot>& slot) {
    std::shared_ptr<const Descriptor> closed;  // outside of the lock
    Lock lock(mutex_);
    if (slots_.size() < most_) {
      slots_.push_back(slot);
      return;
    }
    while (true) {
      hand_ = (hand_ + 1) % slots_.size();
      const auto at = slots_[hand_].lock();
      if (at && at != slot && at->used.exchange(false)) continue;
      slots_[hand_] = slot;
      if (!at || at == slot) return;
      Lock inner(at->mutex);
      closed = std::move(at->open);
      return;
    }
  }

 private:
  static std::size_t limit() {
    struct rlimit most{};
    if (::getrlimit(RLIMIT_NOFILE, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return 256;
    return std::clamp<std::size_t>(most.rlim_cur / 4, 4, 256);
  }
  const std::size_t most_ = limit();
  Mutex mutex_;
  std::vector<std::weak_ptr<FileHandle::Slot>> slots_ PENSTOCK_GUARDED_BY(mutex_);
  std::size_t hand_ PENSTOCK_GUARDED_BY(mutex_) = 0;
};

/// A Failure if the open file is not the one of the handle any more.
Result<void> check_unchanged(const Descriptor& open, const FileHandle& file) {
  struct stat facts{};
  if (::fstat(open.number(), &facts) != 0) return io_failure("cannot stat", file.path(), errno);
  const auto now = static_cast<std::uint64_t>(facts.st_size);
  const bool same = now == file.bytes() && modified_ns_of(facts) == file.modified_ns();
  if (S_ISREG(facts.st_mode) && (file.grows() || same)) return {};
  return Failure{
      fmt::format("{} was changed after the dataset was defined: it had {} bytes, now {}",
                  printable(file.path()), file.bytes(), now),
      {},
      "define the dataset again"};
}

Result<std::shared_ptr<const Descriptor>> open_handle(const FileHandle& file) {
  static auto& handles = *new OpenHandles;  // used until the process ends
  const std::shared_ptr<FileHandle::Slot>& slot = file.slot();
  slot->used.store(true, std::memory_order_relaxed);
  std::shared_ptr<const Descriptor> open;
  {
    Lock lock(slot->mutex);
    if (slot->open) return slot->open;
    open = std::make_shared<const Descriptor>(file.path(), O_RDONLY | O_NONBLOCK);
    if (open->number() < 0) return io_failure("cannot open", file.path(), errno);
    if (auto same = check_unchanged(*open, file); !same) return std::move(same.failure());
    slot->open = open;
  }
  handles.add(slot);
  return open;
}

class PosixIo final : public Io {
 public:
  Result<void> read_parts(const FileHandle& file, std::uint64_t offset,
                          std::span<const std::span<std::byte>> parts) override {
    const auto open = open_handle(file);
    if (!open) return open.failure();
    constexpr std::size_t kOnStack = 64;
    std::array<iovec, kOnStack> few{};
    std::vector<iovec> many;
    if (parts.size() > kOnStack) many.resize(parts.size());
    iovec* const vectors = parts.size() > kOnStack ? many.data() : few.data();
    for (std::size_t i = 0; i < parts.size(); ++i) vectors[i] = {parts[i].data(), parts[i].size()};
    std::span<iovec> left(vectors, parts.size());
    drop_front(left, 0);
    while (!left.empty()) {
      const ssize_t got =
          ::preadv((*open)->number(), left.data(), parts_at_once(left), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return io_failure("cannot read", file.path(), errno);
      if (got == 0) return cut_short(file.path(), offset, offset, left.front().iov_len);
      offset += static_cast<std::uint64_t>(got);
      drop_front(left, static_cast<std::size_t>(got));
    }
    return {};
  }

  Result<void> read_at(const FileHandle& file, std::uint64_t offset,
                       std::span<std::byte> out) override {
    if (offset > file.bytes() || out.size() > file.bytes() - offset)
      return cut_short(file.path(), file.bytes(), offset, out.size());
    const auto open = open_handle(file);
    if (!open) return open.failure();
    const auto done = read_into(**open, file.path(), out.data(), out.size(), offset);
    if (!done) return done.failure();
    // A file that is written in place while it is open is noticed soon: looking costs as much as
    // reading a kilobyte.
    constexpr std::uint32_t kCheckEvery = 16;
    const bool cut = *done < out.size();
    if (cut || file.slot()->reads.fetch_add(1, std::memory_order_relaxed) % kCheckEvery == 0)
      if (auto same = check_unchanged(**open, file); !same) return same;
    if (cut) return cut_short(file.path(), offset + *done, offset, out.size());
    return {};
  }

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
    return done ? rename(before, path) : std::move(done);
  }

  Result<void> rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) {
      auto failure = io_failure("cannot write", to, errno);
      ::unlink(from.c_str());
      return failure;
    }
    const std::size_t slash = to.rfind('/');
    const Descriptor folder(slash == std::string::npos ? "." : to.substr(0, slash + 1));
    // Some file systems cannot flush folders, and a folder may be writable but not readable.
    const bool flushed = folder.number() < 0
                             ? errno == EACCES
                             : ::fsync(folder.number()) == 0 || errno == EINVAL || errno == ENOTSUP;
    if (!flushed) return io_failure("cannot flush to disk", to, errno);
    return {};
  }

  Result<void> create_folder(const std::string& folder) override {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return io_failure("cannot create the folder", folder, error.value());
    return {};
  }

  Result<std::unique_ptr<FileAppender>> create(const std::string& path) override {
    return create_appender(path);
  }

  Result<void> remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      return io_failure("cannot remove", path, errno);
    return {};
  }

  Result<std::unique_ptr<FileLock>> try_lock(const std::string& path) override {
    return try_file_lock(path);
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
