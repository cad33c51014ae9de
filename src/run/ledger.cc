#include "penstock/loader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <deque>
#include <fstream>
#include <utility>

#include "base/json.h"
#include "base/mutex.h"
#include "base/printable.h"
#include "base/report.h"
#include "penstock/io.h"

namespace penstock {
namespace {

constexpr std::size_t kEntriesMax = 1000;
constexpr std::size_t kFirstMax = 10;

std::string line_of(const LedgerEntry& entry) {
  return fmt::format("sample {} of source {} (epoch {}, step {}, {}{}{}): {}", entry.sample.number,
                     entry.sample.source, entry.epoch, entry.step, entry.op,
                     entry.file.empty() ? "" : ", file ", printable(entry.file), entry.reason);
}

std::string json_of(const LedgerEntry& entry) {
  Json fields{
      {"epoch", entry.epoch},          {"step", entry.step}, {"source", entry.sample.source},
      {"number", entry.sample.number}, {"op", entry.op},     {"reason", entry.reason}};
  if (!entry.file.empty()) fields["file"] = printable(entry.file);
  // A reason may contain user bytes that are not UTF-8.
  return fields.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// A failed write may have left an incomplete line.
bool ends_in_a_cut_line(const std::string& file) {
  std::ifstream text(file, std::ios::binary | std::ios::ate);
  if (!text || text.tellg() == std::streampos(0)) return false;
  text.seekg(-1, std::ios::end);
  return text.get() != '\n';
}

}  // namespace

/// The entries, which other threads may read while the consumer adds some.
class Ledger::Entries {
 public:
  explicit Entries(std::uint64_t limit) : limit_(limit) {}

  struct Added {
    std::string lines;     // for the file
    std::string too_many;  // the error text if the limit is exceeded
  };
  Added add(const std::vector<LedgerEntry>& entries) {
    Lock lock(mutex_);
    Added added;
    for (const LedgerEntry& entry : entries) {
      if (entry.epoch != epoch_) {
        epoch_ = entry.epoch;
        epoch_count_ = 0;
        epoch_first_.clear();
      }
      ++count_;
      ++epoch_count_;
      if (epoch_first_.size() < kFirstMax) epoch_first_.push_back(line_of(entry));
      if (latest_.size() == kEntriesMax) latest_.pop_front();
      latest_.push_back(entry);
      added.lines += json_of(entry);
    }
    if (epoch_count_ > limit_)
      added.too_many =
          fmt::format("{} samples of epoch {} were skipped, more than the {} allowed:\n  {}",
                      epoch_count_, epoch_, limit_, fmt::join(epoch_first_, "\n  "));
    return added;
  }
  [[nodiscard]] std::string take_unwritten() {
    Lock lock(mutex_);
    return std::exchange(unwritten_, {});
  }
  /// Returns true for the first failure: later ones are not reported.
  bool keep_unwritten(const std::string& lines) {
    constexpr std::size_t kBytesMax = std::size_t{1} << 20;
    Lock lock(mutex_);
    const bool long_list = lines.size() > kBytesMax;
    unwritten_ = long_list ? lines.substr(lines.find('\n', lines.size() - kBytesMax) + 1) : lines;
    return !std::exchange(failed_, true);
  }
  [[nodiscard]] std::vector<LedgerEntry> latest() const {
    Lock lock(mutex_);
    return {latest_.begin(), latest_.end()};
  }
  [[nodiscard]] std::uint64_t count() const {
    Lock lock(mutex_);
    return count_;
  }
  [[nodiscard]] std::string text() const {
    Lock lock(mutex_);
    std::string text = fmt::format("{} samples skipped\n", count_);
    for (const LedgerEntry& entry : latest_) text += fmt::format("  {}\n", line_of(entry));
    return text;
  }

 private:
  const std::uint64_t limit_;
  mutable Mutex mutex_;
  std::uint64_t count_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::uint64_t epoch_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::uint64_t epoch_count_ PENSTOCK_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> epoch_first_ PENSTOCK_GUARDED_BY(mutex_);
  std::deque<LedgerEntry> latest_ PENSTOCK_GUARDED_BY(mutex_);
  std::string unwritten_ PENSTOCK_GUARDED_BY(mutex_);
  bool failed_ PENSTOCK_GUARDED_BY(mutex_) = false;
};

Ledger::Ledger(std::string file, std::uint64_t limit)
    : file_(std::move(file)), entries_(std::make_unique<Entries>(limit)) {}
Ledger::~Ledger() {
  write({});
}

/// Lines that cannot be written are stored and retried with the next entries: a full disk under a
/// log must not end a run. `entries()` includes them.
void Ledger::write(const std::string& lines) {
  if (file_.empty()) return;
  const std::string before = entries_->take_unwritten();
  const std::string all = before + lines;
  if (all.empty()) return;
  const bool cut = !before.empty() && ends_in_a_cut_line(file_);
  const auto written = Io::real().append(file_, (cut ? "\n" : "") + all);
  if (!written && entries_->keep_unwritten(all))
    report(
        fmt::format("the ledger {} cannot be written: {}; the run continues, and writing is "
                    "tried again with the next skipped sample",
                    printable(file_), written.failure().message));
}

void Ledger::add(const std::vector<LedgerEntry>& entries) {
  const Entries::Added added = entries_->add(entries);
  write(added.lines);
  if (added.too_many.empty()) return;
  throw SampleError(added.too_many, {},
                    file_.empty() ? "fix the data, or allow more with skip_limit"
                                  : fmt::format("all of them are in {}; fix the data, or allow "
                                                "more with skip_limit",
                                                file_));
}

std::vector<LedgerEntry> Ledger::entries() const {
  return entries_->latest();
}

std::uint64_t Ledger::count() const {
  return entries_->count();
}

std::string Ledger::text() const {
  return entries_->text();
}

}  // namespace penstock
