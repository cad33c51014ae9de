#pragma once
// Files by pattern.

#include <string>
#include <string_view>

#include "penstock/io.h"
#include "source/file_table.h"

namespace penstock {

/// True if `name`, without slashes, matches `pattern`: `*` any letters, `?` one byte, `[a-z]` or
/// `[!a-z]` one of a set, `\` makes the next letter literal. Takes linear time for each `*`.
bool name_matches(std::string_view pattern, std::string_view name);

/// The files that match, sorted by name; names are relative to the folder that the pattern begins
/// with. `**` between slashes matches any folders, or none; it follows no links. Throws IoError for
/// an error that may be transient.
FileTable list_matching(Io& io, const std::string& pattern, bool hidden);

}  // namespace penstock
