#pragma once
// Finding the records of many files at the same time.

#include <memory>
#include <vector>

#include "penstock/io.h"
#include "penstock/record_files.h"
#include "record/record_kind.h"
#include "source/record_index.h"

namespace penstock {

/// The indexes of `files`, in their order: loaded where they are stored, otherwise built and
/// stored. Blocks. Throws IoError for a file that cannot be read, and what `options.progress`
/// throws.
std::vector<RecordIndex> build_indexes(Io& io, const RecordKind& kind,
                                       const std::vector<std::shared_ptr<const FileHandle>>& files,
                                       const RecordFileOptions& options);

/// Where the index of a file is stored; "" if nowhere.
std::string index_path(const FileHandle& file, const RecordFileOptions& options);

}  // namespace penstock
