#pragma once
// The samples of files of records.

#include <cstdint>
#include <memory>

#include "base/json_fwd.h"
#include "penstock/io.h"
#include "record/record_kind.h"
#include "source/record_files.h"
#include "source/source.h"

namespace penstock {

/// `arguments` are those of the dataset's function, for other processes.
struct RecordSourceParts {
  std::string word;
  std::shared_ptr<const RecordFiles> files;
  std::shared_ptr<const RecordDecoder> decoder;
  std::uint64_t record_bytes_max = UINT64_MAX;
  std::shared_ptr<const Json> arguments;
};
std::shared_ptr<const Source> make_record_source(RecordSourceParts parts);

/// Adds to a failure which record of which file it is.
Failure in_record(Failure failure, const std::string& file, const std::string& place);

/// The failure of a record that is larger than its limit.
Failure record_too_large(std::uint64_t bytes, std::uint64_t bytes_max);

}  // namespace penstock
