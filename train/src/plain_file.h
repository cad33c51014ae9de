#pragma once
// Files of a checkpoint are not trusted: anyone with write access to the folder may have put a
// pipe, a device or a file of any size there.

#include <penstock/error.h>

#include <cstdint>
#include <optional>
#include <string>

namespace penstock::train {

/// The file exists, but this process may not read it.
class DeniedError : public StateError {
 public:
  using StateError::StateError;
};

/// True for a name that stays in its folder: no slash, not "." or "..", not empty.
bool is_plain_name(const std::string& name);

/// Reads the whole of a regular file, which must have `size` bytes if that is given, and at most
/// `bytes_max`. Both are checked before memory is allocated. Throws StateError if it is missing,
/// not a regular file or of a different size, DeniedError if it may not be read, and IoError for a
/// transient error: an I/O error, too many open files.
std::string read_plain_file(const std::string& path, std::optional<std::uint64_t> size,
                            std::uint64_t bytes_max);

/// Flushes the names in a folder to disk. Throws IoError.
void sync_folder(const std::string& folder);
/// Creates a folder and its parents, and flushes their names to disk. Throws IoError.
void make_folders(const std::string& folder);

}  // namespace penstock::train
