#pragma once
// Files of a checkpoint are read with suspicion: whoever may write to the folder may have put a
// pipe, a device or a file of any size there.

#include <penstock/error.h>

#include <cstdint>
#include <optional>
#include <string>

namespace penstock::train {

/// The file is there, and this process may not read it.
class DeniedError : public StateError {
 public:
  using StateError::StateError;
};

/// True for a name that stays in its folder: no slash, no dots alone, not empty.
bool is_plain_name(const std::string& name);

/// The whole of a regular file, which must have `size` bytes where that is given, and at most
/// `bytes_max`. Both are checked before memory is taken. Throws StateError when it is missing, no
/// regular file or of another size, DeniedError when it may not be read, and IoError for what may
/// pass: an I/O error, too many open files.
std::string read_plain_file(const std::string& path, std::optional<std::uint64_t> size,
                            std::uint64_t bytes_max);

/// Brings the names in a folder to disk. Throws IoError.
void sync_folder(const std::string& folder);
/// Makes a folder and those above it, and brings their names to disk. Throws IoError.
void make_folders(const std::string& folder);

}  // namespace penstock::train
