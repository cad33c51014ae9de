#include "source/find_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/printable.h"
#include "penstock/error.h"
#include "source/glob.h"

namespace penstock {
namespace {

constexpr std::size_t kNamesMax = 1'000'000;

std::optional<std::uint64_t> whole_number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// "000..127", or nothing if the text is no range.
std::optional<std::vector<std::string>> range_of(const std::string& word, std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::string_view low = text.substr(0, dots);
  const std::string_view high = text.substr(dots + 2);
  const auto first = whole_number_of(low);
  const auto last = whole_number_of(high);
  if (!first || !last) return std::nullopt;
  if (*first > *last || *last - *first >= kNamesMax)
    throw ConfigError(fmt::format("{}: {{{}}} is not a range of file numbers", word, text), {},
                      "write the smaller number first, as in {000..127}");
  const std::size_t width = low.starts_with('0') ? low.size() : 1;
  std::vector<std::string> numbers;
  for (std::uint64_t i = 0; i <= *last - *first; ++i)
    numbers.push_back(fmt::format("{:0{}}", *first + i, width));
  return numbers;
}

std::vector<std::string> choices_of(const std::string& word, std::string_view text) {
  if (auto numbers = range_of(word, text)) return std::move(*numbers);
  std::vector<std::string> choices;
  while (true) {
    const std::size_t comma = text.find(',');
    choices.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return choices;
    text.remove_prefix(comma + 1);
  }
}

FoundFile found(const std::string& path, const FolderEntry& entry) {
  return {path, entry.bytes, entry.modified_ns};
}

[[noreturn]] void refuse(const std::string& word, const std::string& path, const Failure& failure) {
  if (failure.transient()) throw IoError(fmt::format("{}: {}", word, failure.message));
  throw ConfigError(
      fmt::format("{}: no file matches \"{}\"", word, printable(path)), {},
      "check the path; * and ? match within a name, ** any folders, {00..15} numbers");
}

void add_matching(Io& io, const std::string& word, const std::string& pattern,
                  std::vector<FoundFile>& files) {
  const FileTable table = list_matching(io, pattern, false);
  if (table.size() == 0) refuse(word, pattern, {});
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::string path = table.path(i);
    const auto entry = io.look(path);
    if (!entry) refuse(word, path, entry.failure());
    files.push_back(found(path, *entry));
  }
}

}  // namespace

std::vector<std::string> expand_braces(const std::string& word, const std::string& name) {
  const std::size_t open = name.find('{');
  const std::size_t close = name.find('}', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return {name};
  const std::vector<std::string> rests = expand_braces(word, name.substr(close + 1));
  std::vector<std::string> names;
  for (const std::string& choice :
       choices_of(word, std::string_view(name).substr(open + 1, close - open - 1))) {
    for (const std::string& rest : rests) names.push_back(name.substr(0, open) + choice + rest);
    if (names.size() > kNamesMax)
      throw ConfigError(
          fmt::format("{}: \"{}\" stands for more than a million files", word, printable(name)));
  }
  return names;
}

std::vector<FoundFile> find_files(Io& io, const std::string& word,
                                  const std::vector<std::string>& paths) {
  std::vector<FoundFile> files;
  for (const std::string& path : paths) {
    if (path.empty() || path.find('\0') != std::string::npos)
      throw ConfigError(fmt::format("{}: \"{}\" is not a path", word, printable(path)));
    const auto entry = io.look(path);
    if (entry && (*entry).kind == FolderEntry::Kind::file) {
      files.push_back(found(path, *entry));
      continue;
    }
    if (entry && (*entry).kind == FolderEntry::Kind::folder)
      throw ConfigError(fmt::format("{}: {} is a folder", word, printable(path)), {},
                        fmt::format("name its files, as in \"{}/*\"", printable(path)));
    if (entry)
      throw ConfigError(fmt::format("{}: {} is not a regular file", word, printable(path)), {},
                        "copy it to a file first, or use from_generator for a pipe");
    for (const std::string& pattern : expand_braces(word, path)) {
      const auto exact = io.look(pattern);
      if (exact && (*exact).kind == FolderEntry::Kind::file) {
        files.push_back(found(pattern, *exact));
      } else {
        add_matching(io, word, pattern, files);
      }
    }
  }
  if (files.empty()) throw ConfigError(fmt::format("{}: there are no paths", word));
  return files;
}

std::string shared_folder(const std::vector<std::string>& paths) {
  if (paths.empty()) return {};
  std::string_view shared = paths.front();
  for (const std::string& path : paths) {
    const auto [end, other] = std::ranges::mismatch(shared, path);
    shared = shared.substr(0, static_cast<std::size_t>(end - shared.begin()));
  }
  return std::string(shared.substr(0, shared.rfind('/') + 1));
}

}  // namespace penstock
