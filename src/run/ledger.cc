// tested in src/feed/loader_test.cc
#include "penstock/loader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/io.h"
#include "base/json.h"
#include "base/printable.h"

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
  // A reason may hold bytes of the user's that are not UTF-8.
  return fields.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

void Ledger::add(const std::vector<LedgerEntry>& entries) {
  std::string lines;
  for (const LedgerEntry& entry : entries) {
    if (entry.epoch != epoch_) {
      epoch_ = entry.epoch;
      epoch_count_ = 0;
      epoch_first_.clear();
    }
    ++count_;
    ++epoch_count_;
    if (epoch_first_.size() < kFirstMax) epoch_first_.push_back(line_of(entry));
    if (entries_.size() == kEntriesMax) entries_.erase(entries_.begin());
    entries_.push_back(entry);
    lines += json_of(entry);
  }
  if (!file_.empty() && !lines.empty())
    if (const auto written = Io::real().append(file_, lines); !written)
      throw IoError(fmt::format("the ledger cannot be written: {}", written.failure().message));
  if (epoch_count_ > limit_)
    throw SampleError(
        fmt::format("{} samples of epoch {} were left out, more than the {} allowed:\n  {}",
                    epoch_count_, epoch_, limit_, fmt::join(epoch_first_, "\n  ")),
        {},
        file_.empty() ? "mend the data, or allow more with skip_limit"
                      : fmt::format("all of them are in {}; mend the data, or allow more with "
                                    "skip_limit",
                                    file_));
}

std::string Ledger::text() const {
  std::string text = fmt::format("{} samples left out\n", count_);
  for (const LedgerEntry& entry : entries_) text += fmt::format("  {}\n", line_of(entry));
  return text;
}

}  // namespace penstock
