#pragma once
// A folder of rows: dataset.json, and row files with their indexes.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "penstock/io.h"
#include "store/rows_header.h"

namespace penstock {

/// The names of files: "rows-000012-0123456789abcdef.psr", and the same with ".index".
std::string row_file_name(std::uint64_t sequence, std::uint64_t salt);
/// The sequence number of a row file; nothing for any other name.
std::optional<std::uint64_t> row_file_sequence(std::string_view name);
std::string row_index_name(std::string_view row_file);
/// A number that no other process draws.
std::uint64_t random_number();

/// The header of `folder`; nothing if there is none or, with `damaged_is_none`, if it is damaged.
/// Throws ConfigError that begins with `title` if dataset.json is not ours, of a newer format, or
/// cannot be read.
std::optional<RowsHeader> find_header(Io& io, const std::string& folder, const std::string& title,
                                      bool damaged_is_none);
/// Throws ConfigError with both digests if `found` is of other data than `wanted`.
void refuse_other_data(const RowsHeader& found, const RowsData& wanted, const std::string& title);
Result<void> publish_header(Io& io, const std::string& folder, const RowsHeader& header);
/// Creates `folder` if needed, and its header unless there is one; returns the one that is there.
/// Throws ConfigError that begins with `title` if that cannot be done, or if the folder holds other
/// data.
RowsHeader open_header(Io& io, const std::string& folder, const RowsHeader& wanted,
                       const std::string& title);

/// Removes all row files and dataset.json; other files stay.
Result<void> remove_rows(Io& io, const std::string& folder);
/// Removes what writers that were killed more than an hour ago did not finish.
void remove_old_drafts(Io& io, const std::string& folder);

/// Locks the folder for a writer of all of its rows; null if another process has locked it. On file
/// systems without locks, nothing is locked.
std::unique_ptr<FileLock> lock_folder(Io& io, const std::string& folder, bool& locked_elsewhere);

}  // namespace penstock
