#pragma once
// A row file as a whole: which rows it has. Read from its frames, or from an index file that was
// written beside it when somebody had read them.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/io.h"
#include "store/row_format.h"

namespace penstock {

/// A row in a file.
struct StoredRow {
  std::uint64_t number = 0;
  std::uint64_t offset = 0;  // of the frame
  std::uint64_t payload_bytes = 0;
};

/// Reads the frames of `file` in [from, end) without their payloads and appends the rows. Skips
/// what is damaged. Returns where to go on once the file has grown: after the last complete frame,
/// whose padding may be missing.
Result<std::uint64_t> scan_rows(Io& io, const FileHandle& file, std::uint64_t salt,
                                std::uint64_t from, std::uint64_t end,
                                std::vector<StoredRow>& rows);

/// The rows of a file up to `end`.
struct RowFileIndex {
  RowFileStart start;
  std::uint64_t end = 0;
  std::vector<StoredRow> rows;
};
std::string row_file_index_text(const RowFileIndex& index);
/// Nothing if the text is damaged or the index of another file.
std::optional<RowFileIndex> parse_row_file_index(std::string_view text, const RowFileStart& start,
                                                 std::uint64_t file_bytes);

}  // namespace penstock
