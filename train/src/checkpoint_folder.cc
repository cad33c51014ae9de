// How checkpoints enter and leave their folder: at no moment, and after no failure, does a name
// that had a complete checkpoint lose it. tested in train/tests/checkpoint_folder_test.cc
#include <fcntl.h>
#include <fmt/format.h>
#include <penstock/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/crc32c.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/report.h"
#include "checkpoint_files.h"
#include "penstock/io.h"
#include "plain_file.h"

namespace penstock::train {
namespace fs = std::filesystem;
namespace {

constexpr const char* kPrefix = "step-";
constexpr const char* kUnfinished = ".unfinished";
constexpr const char* kOld = ".old";

fs::path hidden(const fs::path& folder, const std::string& name, const char* kind) {
  return folder / fmt::format(".{}{}", name, kind);
}

[[noreturn]] void throw_io(const std::string& what, const std::string& why) {
  throw IoError(fmt::format("checkpoint {}: {}", printable(what), why), {},
                "is the disk full, or the folder not writable?");
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

void remove_quietly(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
}

void rename_to(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_io(to.string(), std::strerror(errno));
}

/// Exchanges both names atomically. False if the file system cannot do that.
bool exchange(const fs::path& one, const fs::path& other) {
  if (PENSTOCK_FAULT("checkpoint.no_exchange")) return false;
  if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0)
    return true;
  if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) return false;
  throw_io(other.string(), std::strerror(errno));
}

/// A save that was killed between two renames left the checkpoint under its second name.
void put_back_old(const fs::path& folder, const std::string& name) {
  const fs::path old = hidden(folder, name, kOld);
  if (!is_there(old)) return;
  if (is_there(folder / name)) {
    remove_quietly(old);
  } else {
    rename_to(old, folder / name);
  }
}

void put_in_place(const fs::path& folder, const std::string& name) {
  const fs::path path = folder / name;
  const fs::path unfinished = hidden(folder, name, kUnfinished);
  if (!is_there(path)) return rename_to(unfinished, path);
  if (exchange(unfinished, path)) return;
  const fs::path old = hidden(folder, name, kOld);
  rename_to(path, old);
  try {
    if (PENSTOCK_FAULT("checkpoint.second_rename")) throw_io(path.string(), std::strerror(ENOSPC));
    rename_to(unfinished, path);
  } catch (const IoError&) {
    rename_to(old, path);
    throw;
  }
}

void write_files(const fs::path& folder, const Checkpoint& checkpoint) {
  Json list = Json::object();
  const auto write = [&](const std::string& name, const std::string& text) {
    const std::string path = (folder / name).string();
    if (const auto done = Io::real().publish(path, text); !done)
      throw_io(path, done.failure().message);
  };
  for (const auto& [name, text] : encode_files(checkpoint)) {
    write(name, text);
    list[name] = {{"bytes", text.size()}, {"crc32c", crc32c(text)}};
  }
  write(kFileList, list.dump(1));
}

/// The number in step-0000000010, or nullopt.
std::optional<std::uint64_t> step_number(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string digits = name.substr(std::strlen(kPrefix));
  if (digits.empty() || digits.size() > 18 ||
      !std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  return std::stoull(digits);
}

/// The name in .NAME.old and .NAME.unfinished, or nullopt.
std::optional<std::string> name_in(const std::string& hidden_name, const std::string& kind) {
  if (!hidden_name.starts_with(".") || !hidden_name.ends_with(kind) ||
      hidden_name.size() < kind.size() + 2)
    return std::nullopt;
  return hidden_name.substr(1, hidden_name.size() - kind.size() - 1);
}

/// Names in a folder; none if it does not exist. Throws IoError.
std::vector<std::string> names_in(const std::string& folder) {
  if (!is_there(folder)) return {};
  const auto entries = Io::real().list(folder);
  if (!entries)
    throw IoError(fmt::format("the folder of checkpoints: {}", entries.failure().message), {},
                  "give this user permission to list it");
  std::vector<std::string> names;
  for (const FolderEntry& entry : *entries) names.push_back(entry.name);
  return names;
}

struct Step {
  std::uint64_t iteration = 0;
  std::string path;
  auto operator<=>(const Step&) const = default;
};
/// Newest first.
std::vector<Step> steps_of(const std::string& folder) {
  std::vector<Step> found;
  for (const std::string& name : names_in(folder)) {
    const fs::path path = fs::path(folder) / name;
    if (const auto number = step_number(name)) found.push_back({*number, path.string()});
    if (const auto of = name_in(name, kOld); of && !is_there(fs::path(folder) / *of))
      if (const auto number = step_number(*of)) found.push_back({*number, path.string()});
  }
  std::ranges::sort(found, std::greater());
  return found;
}

/// Why the checkpoint cannot be used, or nullopt.
std::optional<std::string> fault_of(const std::string& path) {
  try {
    (void)checked_files(path);
  } catch (const Error& error) {
    return error.what();
  }
  return std::nullopt;
}

void set_aside(const Step& step, const std::string& why) {
  const fs::path path(step.path);
  fs::path aside;
  for (int i = 1; aside.empty() || is_there(aside); ++i)
    aside = path.parent_path() / fmt::format("unusable-{}-{}", path.filename().string(), i);
  rename_to(path, aside);
  report(fmt::format("checkpoint {} cannot be used and was renamed to {}: {}", printable(step.path),
                     printable(aside.filename().string()), why));
}

void remove_left_over(const std::string& folder) {
  for (const std::string& name : names_in(folder)) {
    if (name_in(name, kUnfinished)) remove_quietly(fs::path(folder) / name);
    if (const auto of = name_in(name, kOld)) put_back_old(folder, *of);
  }
}

}  // namespace

std::string step_path(const std::string& folder, std::uint64_t iteration) {
  return (fs::path(folder) / fmt::format("{}{:010}", kPrefix, iteration)).string();
}

std::string save_checkpoint_as(const std::string& folder, const std::string& name,
                               const Checkpoint& checkpoint) {
  const fs::path unfinished = hidden(folder, name, kUnfinished);
  make_folders(folder);
  put_back_old(folder, name);
  remove_quietly(unfinished);
  try {
    make_folders(unfinished.string());
    write_files(unfinished, checkpoint);
    put_in_place(folder, name);
  } catch (...) {
    remove_quietly(unfinished);
    throw;
  }
  // The previous one is removed only when the new one is on disk.
  sync_folder(folder);
  remove_quietly(unfinished);
  remove_quietly(hidden(folder, name, kOld));
  return (fs::path(folder) / name).string();
}

std::string save_checkpoint(const std::string& folder, const Checkpoint& checkpoint,
                            std::uint64_t keep) {
  const fs::path path = step_path(folder, checkpoint.iteration);
  save_checkpoint_as(folder, path.filename().string(), checkpoint);
  std::uint64_t whole = 1;
  for (const Step& step : steps_of(folder)) {
    if (step.iteration >= checkpoint.iteration || run_of(step.path) != checkpoint.run) continue;
    if (++whole <= keep) continue;
    // Under a name that the next start removes, if this is killed half-way.
    const fs::path gone = hidden(folder, fs::path(step.path).filename().string(), kUnfinished);
    remove_quietly(gone);
    if (::rename(step.path.c_str(), gone.c_str()) == 0) remove_quietly(gone);
  }
  return path.string();
}

std::optional<std::string> newest_checkpoint(const std::string& folder, bool skip_unreadable) {
  fs::path path(folder);
  if (!path.has_filename()) path = path.parent_path();
  const fs::path old = hidden(path.parent_path(), path.filename().string(), kOld);
  if (!is_there(path) && is_there(old)) return old.string();
  if (is_there(path / kFileList)) return folder;  // it is a checkpoint itself
  const std::vector<Step> steps = steps_of(folder);
  for (const Step& step : steps) {
    try {
      (void)checked_files(step.path);
      return step.path;
    } catch (const DeniedError& error) {
      if (!skip_unreadable)
        throw StateError(
            fmt::format("checkpoint {} cannot be read: {}", printable(step.path), error.message()),
            {},
            "give this user permission to read it, or resume from an older one with --resume-older "
            "(FitOptions::resume_older)");
      report(fmt::format("checkpoint {} cannot be read and is not used: {}", printable(step.path),
                         error.what()));
    } catch (const IoError& error) {
      if (!skip_unreadable)
        throw IoError(
            fmt::format("checkpoint {} cannot be read: {}", printable(step.path), error.message()),
            {},
            "try again, or resume from an older one with --resume-older "
            "(FitOptions::resume_older)");
      report(fmt::format("checkpoint {} cannot be read and is not used: {}", printable(step.path),
                         error.what()));
    } catch (const StateError& error) {
      report(fmt::format("checkpoint {} is damaged and not used: {}", printable(step.path),
                         error.what()));
    }
  }
  if (!steps.empty())
    throw StateError(fmt::format("none of the {} checkpoints in {} can be used; the newest is {}",
                                 steps.size(), printable(folder), printable(steps.front().path)),
                     {}, "restore one of them; to start from the beginning, use another folder");
  return std::nullopt;
}

void claim_folder(const std::string& folder, std::uint64_t iteration, bool resumed) {
  remove_left_over(folder);
  for (const Step& step : steps_of(folder)) {
    if (step.iteration <= iteration) break;
    const auto why = resumed ? fault_of(step.path) : std::nullopt;
    if (why) {
      set_aside(step, *why);
      continue;
    }
    throw ConfigError(
        fmt::format("checkpoints: {} contains {} of another run, but this run starts at update {}",
                    printable(folder), printable(fs::path(step.path).filename().string()),
                    iteration),
        {},
        fmt::format("save to another folder, move the checkpoints away, or resume from the newest "
                    "one with --resume {}",
                    printable(folder)));
  }
}

}  // namespace penstock::train
