#pragma once
// Files as users name them: paths, patterns, names with braces.

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/io.h"

namespace penstock {

struct FoundFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
};

/// The files that `paths` name, in this order; those of a pattern by name. A path of an existing
/// file is that file, whatever letters it has. Throws ConfigError, with `word`, for a path that
/// matches no file, and if there is none.
std::vector<FoundFile> find_files(Io& io, const std::string& word,
                                  const std::vector<std::string>& paths);

/// The names that "a-{000..127}.tar" or "{train,val}.csv" stands for. Throws ConfigError for more
/// than a million.
std::vector<std::string> expand_braces(const std::string& word, const std::string& name);

/// The folder that all paths begin with, with its slash; "" if there is none.
std::string shared_folder(const std::vector<std::string>& paths);

}  // namespace penstock
