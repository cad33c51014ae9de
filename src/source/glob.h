#pragma once
// Files by pattern.

#include <string>
#include <string_view>

#include "base/io.h"
#include "source/file_table.h"

namespace penstock {

/// True when `name`, without slashes, is what `pattern` says: `*` any letters, `?` one byte,
/// `[a-z]` or `[!a-z]` one of some, `\` before a letter that means itself. In linear time for each
/// `*`.
bool name_matches(std::string_view pattern, std::string_view name);

/// The files that match, sorted by name; names are relative to the folder that the pattern begins
/// with. `**` between slashes stands for any folders, or none; it goes through no links. Throws
/// IoError when a folder could not be listed now but may be later.
FileTable list_matching(Io& io, const std::string& pattern, bool hidden);

}  // namespace penstock
