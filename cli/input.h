#pragma once
// What a user names on the command line as a dataset.

#include <string>

#include "penstock/dataset.h"

namespace penstock::cli {

/// A folder of images, a folder that `save` wrote, or files of records by their names. Throws
/// ConfigError for anything else.
Dataset open_input(const std::string& path);

}  // namespace penstock::cli
