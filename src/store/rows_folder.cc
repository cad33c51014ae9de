// tested in src/store/disk_rows_test.cc
#include "store/rows_folder.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <charconv>
#include <chrono>
#include <random>
#include <system_error>

#include "base/printable.h"
#include "base/report.h"
#include "penstock/error.h"

namespace penstock {
namespace {

constexpr std::string_view kPrefix = "rows-";
constexpr std::string_view kSuffix = ".psr";
constexpr std::string_view kIndexSuffix = ".index";
constexpr std::string_view kDraftSuffix = ".tmp";
constexpr const char* kHeaderName = "/dataset.json";

/// "cannot open /x: REASON" is enough of a sentence for an error of the set-up.
[[noreturn]] void refuse(const std::string& title, const Failure& failure, const char* remedy) {
  throw ConfigError(fmt::format("{}: {}", title, failure.message), {}, remedy);
}

bool is_ours(std::string_view name) {
  return name.starts_with(kPrefix) || name.starts_with("dataset.json");
}

}  // namespace

std::string row_file_name(std::uint64_t sequence, std::uint64_t salt) {
  return fmt::format("{}{:06}-{:016x}{}", kPrefix, sequence, salt, kSuffix);
}

std::optional<std::uint64_t> row_file_sequence(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::uint64_t sequence = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), sequence);
  if (parsed.ec != std::errc() || parsed.ptr == name.data() + name.size() || *parsed.ptr != '-')
    return std::nullopt;
  return sequence;
}

std::string row_index_name(std::string_view row_file) {
  return std::string(row_file) + std::string(kIndexSuffix);
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) == static_cast<ssize_t>(sizeof number)) return number;
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

std::optional<RowsHeader> find_header(Io& io, const std::string& folder, const std::string& title,
                                      bool damaged_is_none) {
  const std::string path = folder + kHeaderName;
  if (!io.look(path)) return std::nullopt;
  const auto text = io.read_text(path, kRowsHeaderBytesMax);
  if (!text) refuse(title, text.failure(), "check the permissions, or use another folder");
  auto header = parse_rows_header(*text);
  if (header) return std::move(*header);
  if (damaged_is_none && header.failure().message == "it is damaged") return std::nullopt;
  throw ConfigError(
      fmt::format("{}: {} cannot be used: {}", title, printable(path), header.failure().message),
      {}, "use another folder, or delete this one");
}

void refuse_other_data(const RowsHeader& found, const RowsData& wanted, const std::string& title) {
  if (found.data.number() == wanted.number()) return;
  const auto text = [](const RowsData& data) {
    return fmt::format("order {}, values {}, elements {}{}", data.digests.order,
                       data.digests.values, data.spec.text(),
                       data.place.empty() ? "" : ", " + data.place);
  };
  throw ConfigError(fmt::format("{}: the folder holds the rows of other data ({}; written by "
                                "penstock {}); this dataset has {}",
                                title, text(found.data), found.version, text(wanted)),
                    {}, "use another folder, or delete this one");
}

Result<void> publish_header(Io& io, const std::string& folder, const RowsHeader& header) {
  return io.publish(folder + kHeaderName, header.text());
}

RowsHeader open_header(Io& io, const std::string& folder, const RowsHeader& wanted,
                       const std::string& title) {
  constexpr const char* kRemedy = "name a folder that can be written to";
  if (folder.empty()) throw ConfigError(title + ": the folder has no name", {}, kRemedy);
  if (auto done = io.create_folder(folder); !done) refuse(title, done.failure(), kRemedy);
  if (auto found = find_header(io, folder, title, true)) {
    refuse_other_data(*found, wanted.data, title);
    return std::move(*found);
  }
  if (io.look(folder + kHeaderName))
    report(fmt::format("{}: {} is damaged and was written anew", title,
                       printable(folder + kHeaderName)));
  if (auto done = publish_header(io, folder, wanted); !done) refuse(title, done.failure(), kRemedy);
  return wanted;
}

Result<void> remove_rows(Io& io, const std::string& folder) {
  // The header first: without it, no row is used.
  if (auto done = io.remove(folder + kHeaderName); !done) return done;
  const auto entries = io.list(folder);
  if (!entries) return entries.failure();
  for (const FolderEntry& entry : *entries) {
    const std::string_view name = entry.name;
    const bool index =
        name.ends_with(kIndexSuffix) &&
        row_file_sequence(name.substr(0, name.size() - kIndexSuffix.size())).has_value();
    if (entry.kind != FolderEntry::Kind::file || (!index && !row_file_sequence(name))) continue;
    if (auto done = io.remove(fmt::format("{}/{}", folder, name)); !done) return done;
  }
  return {};
}

void remove_old_drafts(Io& io, const std::string& folder) {
  const auto entries = io.list(folder);
  if (!entries) return;
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  for (const FolderEntry& entry : *entries) {
    const bool old = now - entry.modified_ns > std::int64_t{3600} * 1'000'000'000;
    if (old && entry.kind == FolderEntry::Kind::file && is_ours(entry.name) &&
        entry.name.ends_with(kDraftSuffix))
      (void)io.remove(fmt::format("{}/{}", folder, entry.name)).ok();
  }
}

std::unique_ptr<FileLock> lock_folder(Io& io, const std::string& folder, bool& locked_elsewhere) {
  auto lock = io.try_lock(folder + "/dataset.lock");
  locked_elsewhere = lock.ok() && *lock == nullptr;
  return lock ? std::move(*lock) : nullptr;
}

}  // namespace penstock
