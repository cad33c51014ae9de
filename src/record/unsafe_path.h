#pragma once
// Names that come out of files.

#include <algorithm>
#include <string_view>

namespace penstock {

/// True for absolute names and those with a part "..", which could reach out of a folder, and for
/// those with a NUL, which end early for some programs.
inline bool is_unsafe_path(std::string_view name) {
  if (name.starts_with('/') || name.find('\0') != std::string_view::npos) return true;
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part == "..") return true;
    name.remove_prefix(std::min(part.size() + 1, name.size()));
  }
  return false;
}

}  // namespace penstock
