#pragma once
// Files that grow, and locks on files: the parts of Io::real() for folders that are written to.

#include <memory>
#include <string>

#include "penstock/io.h"

namespace penstock {

/// See Io::create.
Result<std::unique_ptr<FileAppender>> create_appender(const std::string& path);
/// See Io::try_lock.
Result<std::unique_ptr<FileLock>> try_file_lock(const std::string& path);

}  // namespace penstock
