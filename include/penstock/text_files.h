#pragma once
// Files of text, one sample per line.

#include <string>
#include <vector>

#include <penstock/dataset.h>

namespace penstock {

/// The lines of files, without their ends (`\n` or `\r\n`), as strings. Each of `paths` is a file
/// or a pattern; files follow each other in this order, those of a pattern by name. The files are
/// mapped and searched for line ends once, here; they must not change while the dataset exists. A
/// line that is not UTF-8 fails. Throws ConfigError if no file matches, IoError if one cannot be
/// read.
Dataset from_text(const std::vector<std::string>& paths);

}  // namespace penstock
