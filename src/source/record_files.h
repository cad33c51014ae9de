#pragma once
// The files of a dataset of records, and where their records are.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/digest.h"
#include "penstock/io.h"
#include "penstock/record_files.h"
#include "record/record_kind.h"
#include "source/find_files.h"
#include "source/record_index.h"

namespace penstock {

/// Uncompressed files with their indexes. Immutable; any thread may use it.
class RecordFiles {
 public:
  struct File {
    std::shared_ptr<const FileHandle> handle;
    std::string name;  // relative to the folder that all files share
    RecordIndex index;
    std::uint64_t end = 0;  // records of this file and those before
  };

  /// Loads or builds the indexes, on as many threads as there are cores, and stores those that were
  /// built. Throws IoError or ConfigError, which name the file. Reports damaged files.
  RecordFiles(Io& io, const RecordKind& kind, const std::vector<FoundFile>& files,
              const RecordFileOptions& options);

  [[nodiscard]] std::uint64_t size() const { return files_.empty() ? 0 : files_.back().end; }
  [[nodiscard]] const std::vector<File>& files() const { return files_; }

  struct Place {
    const File* file = nullptr;
    std::uint64_t record = 0;  // of the file
    RecordSpan span;
  };
  [[nodiscard]] Place at(std::uint64_t number) const;
  /// Of all files.
  [[nodiscard]] std::uint64_t bytes() const;
  /// Memory of the indexes.
  [[nodiscard]] std::uint64_t memory_bytes() const;
  /// Relative names, sizes and numbers of records.
  void identify(Digest& digest) const;

  /// What `kind` wants to see of the first file that has records. Throws IoError.
  [[nodiscard]] FirstRecords first_records(Io& io, const RecordKind& kind) const;
  /// The part of a file before its first record. Throws IoError, and ConfigError if it is larger
  /// than a megabyte.
  static std::string preface_of(Io& io, const std::string& word, const File& file);

 private:
  std::vector<File> files_;
};

}  // namespace penstock
