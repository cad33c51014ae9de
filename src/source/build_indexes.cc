// tested in src/source/record_files_test.cc
#include "source/build_indexes.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/digest.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "penstock/error.h"
#include "source/file_table.h"

namespace penstock {
namespace {

/// Files below this are scanned again each time, which is faster than a second file for each.
constexpr std::uint64_t kStoredBytesMin = std::uint64_t{4} << 20;
constexpr std::uint64_t kIndexBytesMax = std::uint64_t{1} << 34;

std::optional<RecordIndex> load_index(Io& io, const std::string& path, const FileHandle& file,
                                      std::uint64_t content, const std::string& scanning) {
  const auto bytes = io.read_whole(path, {.bytes_max = kIndexBytesMax});
  if (!bytes) return std::nullopt;
  return decode_index({reinterpret_cast<const char*>((*bytes).data()), (*bytes).size()}, file,
                      content, scanning);
}

Result<RecordIndex> index_of(Io& io, const RecordKind& kind, const FileHandle& file,
                             const RecordFileOptions& options,
                             const std::function<bool(std::uint64_t)>& progress) {
  const std::string stored = index_path(file, options);
  std::uint64_t content = 0;
  if (!stored.empty()) {
    auto digest = content_digest(io, file);
    if (!digest) return std::move(digest.failure());
    content = *digest;
    if (auto index = load_index(io, stored, file, content, kind.scanning)) {
      progress(file.bytes());
      return std::move(*index);
    }
  }
  const auto scanner = kind.scanner();
  auto index = scan_records(io, file, *scanner, progress);
  // Where it cannot be written it stays in memory.
  if (index && !stored.empty())
    static_cast<void>(io.publish(stored, encode_index(*index, file, content, kind.scanning)).ok());
  return index;
}

/// Shared by the threads that build; a thread that hangs in a read may outlive the call.
struct Building {
  Io* io = nullptr;
  RecordKind kind;
  RecordFileOptions options;
  std::vector<std::shared_ptr<const FileHandle>> files;
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> done_bytes{0};
  std::atomic<bool> cancelled{false};
  Mutex mutex;
  Condition changed;
  std::vector<RecordIndex> indexes PENSTOCK_GUARDED_BY(mutex);
  std::optional<std::pair<std::size_t, Failure>> failure PENSTOCK_GUARDED_BY(mutex);
  std::exception_ptr broken PENSTOCK_GUARDED_BY(mutex);
  std::size_t running PENSTOCK_GUARDED_BY(mutex) = 0;

  void build() {
    while (!cancelled) {
      const std::size_t file = next.fetch_add(1);
      if (file >= files.size()) return;
      auto index = index_of(*io, kind, *files[file], options, [this](std::uint64_t bytes) {
        done_bytes += bytes;
        return !cancelled;
      });
      Lock lock(mutex);
      if (index) {
        indexes[file] = std::move(*index);
      } else if (!index.failure().cancelled()) {
        cancelled = true;
        if (!failure || file < failure->first) failure.emplace(file, std::move(index.failure()));
      }
    }
  }

  void run() {
    std::exception_ptr thrown;
    try {
      build();
    } catch (...) {
      thrown = std::current_exception();
      cancelled = true;
    }
    Lock lock(mutex);
    if (thrown && !broken) broken = thrown;
    --running;
    changed.notify_all();
  }
};

/// Waits until the threads have finished. An exception from `progress` cancels them.
void wait_for(Building& building, std::uint64_t total) {
  while (true) {
    {
      Lock lock(building.mutex);
      if (building.running > 0)
        building.changed.wait_for(building.mutex, std::chrono::milliseconds(50));
      if (building.running == 0) break;
    }
    if (building.options.progress)
      building.options.progress(std::min(building.done_bytes.load(), total), total);
  }
  if (building.options.progress && total > 0) building.options.progress(total, total);
}

/// Ends the threads; those that hang in a read are abandoned.
void give_up(Building& building, std::vector<Thread>& threads) {
  building.cancelled = true;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  bool ended = false;
  {
    Lock lock(building.mutex);
    while (building.running > 0 && std::chrono::steady_clock::now() < until)
      building.changed.wait_for(building.mutex, std::chrono::milliseconds(20));
    ended = building.running == 0;
  }
  if (ended) return;
  for (Thread& thread : threads) thread.detach();
}

/// Starts up to `count` threads; where the system has no more, fewer, and at least this one works.
std::vector<Thread> start_threads(const std::shared_ptr<Building>& building, std::size_t count) {
  std::vector<Thread> threads;
  {
    Lock lock(building->mutex);
    building->running = count;
  }
  try {
    for (; threads.size() < count;)
      threads.emplace_back(fmt::format("penstock-idx-{}", threads.size()),
                           [building] { building->run(); });
  } catch (const std::system_error&) {
    Lock lock(building->mutex);
    building->running -= count - threads.size();
  }
  if (threads.empty()) {
    {
      Lock lock(building->mutex);
      building->running = 1;
    }
    building->run();
  }
  return threads;
}

}  // namespace

std::string index_path(const FileHandle& file, const RecordFileOptions& options) {
  if (options.index == "memory") return {};
  const std::string& path = file.path();
  const std::size_t name_at = path.rfind('/') + 1;  // 0 without a slash
  const std::string name = path.substr(name_at);
  if (options.index == "beside")
    return file.bytes() < kStoredBytesMin
               ? ""
               : fmt::format("{}.{}.pstkidx", path.substr(0, name_at), name);
  // Files of one name in several folders have indexes of their own.
  Digest digest;
  digest.add(path.substr(0, name_at));
  return join_path(options.index, fmt::format("{}-{}.pstkidx", name, digest.text()));
}

std::vector<RecordIndex> build_indexes(Io& io, const RecordKind& kind,
                                       const std::vector<std::shared_ptr<const FileHandle>>& files,
                                       const RecordFileOptions& options) {
  const auto building = std::make_shared<Building>();
  building->io = &io;
  building->kind = kind;
  building->options = options;
  building->files = files;
  std::uint64_t total = 0;
  for (const auto& file : files) total += file->bytes();
  const std::size_t count = std::min<std::size_t>(usable_cores(), files.size());
  {
    Lock lock(building->mutex);
    building->indexes.resize(files.size());
  }
  std::vector<Thread> threads = start_threads(building, count);
  try {
    wait_for(*building, total);
  } catch (...) {
    give_up(*building, threads);
    throw;
  }
  Lock lock(building->mutex);
  if (building->broken) std::rethrow_exception(building->broken);
  if (building->failure) {
    const auto& [file, failure] = *building->failure;
    Where where;
    where.file = files[file]->path();
    throw IoError(fmt::format("{}: {}", kind.word, failure.message), where, failure.remedy);
  }
  return std::move(building->indexes);
}

}  // namespace penstock
