#include "source/glob.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "penstock/error.h"

namespace penstock {
namespace {

/// Whether a letter matches the first element of a pattern, and the rest of the pattern.
struct LetterMatch {
  bool matches = false;
  std::string_view rest;
};

/// `pattern` begins with '['. A set without an end is the letter itself.
LetterMatch match_set(std::string_view pattern, char letter) {
  std::size_t at = 1;
  const bool not_in = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (not_in) ++at;
  bool found = false;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(pattern[i]); };
  const auto wanted = static_cast<unsigned char>(letter);
  for (const std::size_t first = at; at < pattern.size(); ++at) {
    if (pattern[at] == ']' && at > first) return {found != not_in, pattern.substr(at + 1)};
    if (at + 2 < pattern.size() && pattern[at + 1] == '-' && pattern[at + 2] != ']') {
      found = found || (byte(at) <= wanted && wanted <= byte(at + 2));
      at += 2;
    } else {
      found = found || byte(at) == wanted;
    }
  }
  return {letter == '[', pattern.substr(1)};
}

LetterMatch match_one(std::string_view pattern, char letter) {
  if (pattern[0] == '?') return {true, pattern.substr(1)};
  if (pattern[0] == '[') return match_set(pattern, letter);
  if (pattern[0] == '\\' && pattern.size() > 1) return {pattern[1] == letter, pattern.substr(2)};
  return {pattern[0] == letter, pattern.substr(1)};
}

bool has_wildcard(std::string_view part) {
  return part.find_first_of("*?[\\") != std::string_view::npos;
}

class Matching {
 public:
  Matching(Io& io, std::vector<std::string> parts, std::string root, bool hidden)
      : io_(io), parts_(std::move(parts)), root_(std::move(root)), hidden_(hidden) {}

  std::map<std::string, std::uint64_t> run() {
    look_in("", 0);
    return std::move(found_);
  }

 private:
  /// Finds the files in the folder `relative` that match the parts from `part` on.
  void look_in(const std::string& relative, std::size_t part) {
    // Several `**` lead to one folder in many ways; each folder is visited once.
    if (!seen_.emplace(relative, part).second) return;
    const bool last = part + 1 == parts_.size();
    if (parts_[part] == "**" && !last) look_in(relative, part + 1);
    const auto entries = io_.list(join_path(root_.empty() ? "." : root_, relative));
    if (!entries) {
      if (entries.failure().transient())
        throw IoError(fmt::format("list_files: {}", entries.failure().message));
      return;
    }
    for (const FolderEntry& entry : *entries) {
      if (!name_fits(parts_[part], entry.name)) continue;
      const std::string name = join_path(relative, entry.name);
      const bool folder = entry.kind == FolderEntry::Kind::folder;
      if (folder && parts_[part] == "**") {
        if (!entry.link) look_in(name, part);
      } else if (folder && !last) {
        look_in(name, part + 1);
      } else if (last && entry.kind == FolderEntry::Kind::file) {
        found_[name] = entry.bytes;
      }
    }
  }

  [[nodiscard]] bool name_fits(const std::string& part, const std::string& name) const {
    if (name.starts_with('.') && !hidden_ && !part.starts_with('.')) return false;
    return part == "**" || name_matches(part, name);
  }

  Io& io_;
  const std::vector<std::string> parts_;
  const std::string root_;
  const bool hidden_;
  std::map<std::string, std::uint64_t> found_;
  std::set<std::pair<std::string, std::size_t>> seen_;
};

}  // namespace

bool name_matches(std::string_view pattern, std::string_view name) {
  // The last star: on a mismatch it matches one more letter.
  std::string_view after_star;
  std::string_view star_name;
  bool starred = false;
  while (true) {
    if (!pattern.empty() && pattern[0] == '*') {
      pattern.remove_prefix(1);
      after_star = pattern;
      star_name = name;
      starred = true;
      continue;
    }
    if (name.empty() && pattern.empty()) return true;
    if (!name.empty() && !pattern.empty()) {
      if (const LetterMatch match = match_one(pattern, name[0]); match.matches) {
        pattern = match.rest;
        name.remove_prefix(1);
        continue;
      }
    }
    if (!starred || star_name.empty()) return false;
    star_name.remove_prefix(1);
    name = star_name;
    pattern = after_star;
  }
}

FileTable list_matching(Io& io, const std::string& pattern, bool hidden) {
  std::vector<std::string> parts;
  std::string root = pattern.starts_with('/') ? "/" : "";
  std::size_t at = 0;
  while (at < pattern.size()) {
    const std::size_t slash = std::min(pattern.find('/', at), pattern.size());
    const std::string part = pattern.substr(at, slash - at);
    at = slash + 1;
    if (part.empty()) continue;
    if (parts.empty() && !has_wildcard(part) && slash < pattern.size()) {
      root = join_path(root, part);
    } else if (parts.empty() || part != "**" || parts.back() != "**") {
      parts.push_back(part);
    }
  }
  FileTable files(root);
  if (parts.empty()) return files;
  if (parts.size() == 1 && !has_wildcard(parts[0])) {
    const auto entry = io.look(join_path(root, parts[0]));
    if (entry && (*entry).kind == FolderEntry::Kind::file) files.add(parts[0], (*entry).bytes);
    return files;
  }
  for (const auto& [name, bytes] : Matching(io, std::move(parts), root, hidden).run())
    files.add(name, bytes);
  return files;
}

}  // namespace penstock
