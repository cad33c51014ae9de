#pragma once
// Files of text, one sample per line.

#include <string>
#include <vector>

#include <penstock/dataset.h>
#include <penstock/record_files.h>

namespace penstock {

/// The lines of files, without their ends (`\n` or `\r\n`), as strings; also the empty ones. A byte
/// order mark at the start of a file belongs to no line. A line that is not UTF-8 fails. Throws
/// ConfigError if no file matches, IoError if one cannot be read.
Dataset from_text(const std::vector<std::string>& paths, const RecordFileOptions& options = {});

}  // namespace penstock
