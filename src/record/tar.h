#pragma once
// Tar files of samples: members that follow each other and differ only in what is after the first
// dot of their names are one sample. A record is the region of one sample, from its first header.

#include <memory>
#include <string>
#include <string_view>

#include "penstock/tar.h"
#include "record/record_kind.h"

namespace penstock {

std::unique_ptr<RecordScanner> make_tar_scanner();

/// Throws ConfigError for fields that are wrong, or that cannot be inferred from `first`.
std::shared_ptr<const RecordDecoder> make_tar_decoder(const TarOptions& options,
                                                      const FirstRecords& first);

RecordKind tar_kind(const TarOptions& options);

/// Appends a file to an archive: ustar, with an extended header for a name that is too long. Its
/// bytes depend on nothing else. `name` is not empty and holds no NUL.
void append_tar_member(std::string& archive, std::string_view name, std::string_view content);
/// Appends what stands at the end of an archive.
void append_tar_end(std::string& archive);

}  // namespace penstock
