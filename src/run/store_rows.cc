// tested in src/feed/stored_test.cc
#include "run/store_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/cancel_scope.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/report.h"
#include "graph/node.h"
#include "penstock/clock.h"
#include "plan/cursor.h"
#include "plan/program.h"
#include "run/gang.h"
#include "store/disk_rows.h"
#include "store/memory_rows.h"

namespace penstock {
namespace {

/// The pool's threads, for the maps of a stream that this thread reads.
class StreamHelp final : public Work {
 public:
  explicit StreamHelp(Pool& pool)
      : gang_(pool.threads(), [&pool] { pool.wake(); }, Clock::real()) {}
  bool run_one() override {
    if (!gang_.wants_help()) return false;
    const ScratchStock::Loan loan(scratch_);
    gang_.help(Context(loan.scratch()));
    return true;
  }
  [[nodiscard]] PoolGang& gang() { return gang_; }

 private:
  ScratchStock scratch_;
  PoolGang gang_;
};

class Attached {
 public:
  Attached(const std::shared_ptr<Pool>& pool, const std::shared_ptr<StreamHelp>& work,
           const std::function<void()>& while_waiting)
      : pool_(pool), work_(work) {
    pool_->attach(work_, pool_->threads(), {.while_waiting = while_waiting});
  }
  ~Attached() { pool_->detach(*work_); }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

 private:
  const std::shared_ptr<Pool> pool_;
  const std::shared_ptr<StreamHelp> work_;
};

/// Reports every so often that something takes long: after 30 s, one minute, two minutes, ...
class Patience {
 public:
  [[nodiscard]] bool is_over() {
    const Nanoseconds waited = Clock::real().now() - began_;
    if (waited < report_after_) return false;
    report_after_ = 2 * waited;
    seconds_ = std::chrono::duration<double>(waited).count();
    return true;
  }
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  const Nanoseconds began_ = Clock::real().now();
  Nanoseconds report_after_ = std::chrono::seconds(30);
  double seconds_ = 0;
};

void look_around(const std::string& title, const std::function<void()>& while_waiting) {
  if (while_waiting) while_waiting();
  if (CancelScope::cancelled()) throw CancelledError(title + ": the loader was stopped");
}

[[noreturn]] void refuse_full(const RowsTarget& target, const std::string& why,
                              const std::string& has) {
  const char* const remedy = target.folder.empty() ? "raise bytes_max, or store it in a folder"
                                                   : "make room, or raise bytes_max";
  throw ResourceError(
      fmt::format("{}: the stream does not fit: {}; it has {}, and a stream cannot be computed "
                  "again in parts",
                  target.title,
                  why.empty() ? fmt::format("the limit is {} bytes", target.bytes_max) : why, has),
      {}, remedy);
}

/// Reads the stream into `store`.
std::uint64_t fill(const Dataset& input, const RowsTarget& target, RowStore& store,
                   const std::function<std::string()>& why,
                   const std::function<void()>& while_waiting) {
  return read_stream(
      input, target.title,
      [&](std::span<const std::uint64_t> numbers, const BlockView& rows) {
        store.put(numbers, rows);
        if (store.full()) refuse_full(target, why(), store.text());
      },
      while_waiting);
}

std::shared_ptr<const StoredRows> store_in_memory(const Dataset& input, const RowsTarget& target,
                                                  const std::function<void()>& while_waiting) {
  // An endless stream must not take all memory.
  RowsTarget limited = target;
  if (target.bytes_max == UINT64_MAX) limited.bytes_max = memory_available() / 2;
  const auto memory = std::make_shared<MemoryRows>(limited.bytes_max);
  const std::uint64_t rows =
      fill(input, limited, *memory, [] { return std::string(); }, while_waiting);
  const RowsData data = rows_data(*input.node());
  return std::make_shared<const StoredRows>(
      StoredRows{memory, rows, data.spec, data.digests, "", ""});
}

}  // namespace

std::uint64_t read_stream(
    const Dataset& stream, const std::string& title,
    const std::function<void(std::span<const std::uint64_t> numbers, const BlockView& rows)>& put,
    const std::function<void()>& while_waiting) {
  constexpr std::size_t kRowsMax = 1024;
  constexpr Nanoseconds kLong = std::chrono::milliseconds(50);
  const auto pool = Pool::shared();
  const auto help = std::make_shared<StreamHelp>(*pool);
  const Attached attached(pool, help, while_waiting);
  const FlowPtr flow = compile_flow(*stream.node(), {});
  const CursorPtr cursor = flow->open({0, 0});
  Scratch scratch;
  Pulling pulling{scratch};
  if (pool->threads() > 1) pulling.gang = &help->gang();
  RowBuffer buffer(flow->spec());
  std::vector<std::uint64_t> numbers;
  std::size_t wanted = 1;
  Patience patience;
  while (true) {
    look_around(title, while_waiting);
    const Nanoseconds began = Clock::real().now();
    buffer.reserve(wanted);
    const BlockView rows = buffer.rows(0, wanted);
    auto got = cursor->pull(rows, pulling);
    if (!got) got.failure().raise();
    const std::uint64_t first = numbers.empty() ? 0 : numbers.back() + 1;
    if (*got == 0) return first;
    numbers.resize(*got);
    std::iota(numbers.begin(), numbers.end(), first);
    put(numbers, buffer.rows(0, *got));
    if (*got < wanted) return first + *got;
    // As many at once as keep all threads busy, and the caller informed.
    const Nanoseconds took = Clock::real().now() - began;
    if (took < kLong / 4) wanted = std::min(kRowsMax, wanted * 2);
    if (took > kLong) wanted = std::max<std::size_t>(1, wanted / 2);
    if (patience.is_over())
      report(fmt::format("{}: read {} elements of the stream in {:.0f} s", title, first + *got,
                         patience.seconds()));
  }
}

std::unique_ptr<FileLock> wait_for_folder(Io& io, const std::string& folder,
                                          const std::string& title,
                                          const std::function<void()>& while_waiting) {
  Patience patience;
  while (true) {
    bool elsewhere = false;
    auto lock = lock_folder(io, folder, elsewhere);
    if (!elsewhere) return lock;
    look_around(title, while_waiting);
    if (patience.is_over())
      report(fmt::format("{}: has waited {:.0f} s for another process that writes it", title,
                         patience.seconds()));
    Clock::real().pause(std::chrono::milliseconds(50));
  }
}

namespace {

std::shared_ptr<const StoredRows> store_in_folder(const Dataset& input, const RowsTarget& target,
                                                  const std::function<void()>& while_waiting) {
  Io& io = Io::real();
  RowsHeader header;
  header.data = rows_data(*input.node());
  header.version = PENSTOCK_VERSION;
  if (auto done = io.create_folder(target.folder); !done)
    throw ConfigError(fmt::format("{}: {}", target.title, done.failure().message));
  const auto lock = wait_for_folder(io, target.folder, target.title, while_waiting);
  if (auto stored = open_stored(io, target, header.data)) return stored;
  // Rows of a traversal that has not ended must not be mixed with those of another one.
  if (const auto found = find_header(io, target.folder, target.title, true))
    refuse_other_data(*found, header.data, target.title);
  auto done = remove_rows(io, target.folder);
  header.build = random_number() | 1;
  if (done) done = publish_header(io, target.folder, header);
  if (!done) throw IoError(fmt::format("{}: {}", target.title, done.failure().message));
  DiskRowsSettings settings{
      .title = target.title, .folder = target.folder, .header = header, .quiet = true};
  settings.bytes_max = target.bytes_max;
  const auto disk = std::make_shared<DiskRows>(settings);
  const std::uint64_t rows =
      fill(input, target, *disk, [&disk] { return disk->stopped_because(); }, while_waiting);
  if (disk->rows() < rows)
    throw ConfigError(
        fmt::format("{}: a row is larger than 1 GiB and cannot be stored", target.title), {},
        "cache before the verb that makes rows so large, or leave them out");
  done = disk->finish(rows);
  if (!done) throw IoError(fmt::format("{}: {}", target.title, done.failure().message));
  return std::make_shared<const StoredRows>(
      StoredRows{disk, rows, header.data.spec, header.data.digests, target.folder,
                 "delete the folder: the stream is then read again"});
}

}  // namespace

std::shared_ptr<const StoredRows> store_stream(const Dataset& input, const RowsTarget& target,
                                               const std::function<void()>& while_waiting) {
  return target.folder.empty() ? store_in_memory(input, target, while_waiting)
                               : store_in_folder(input, target, while_waiting);
}

}  // namespace penstock
