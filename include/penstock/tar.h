#pragma once
// Tar files of samples, in the way of WebDataset.

#include <string>
#include <utility>
#include <vector>

#include <penstock/dataset.h>
#include <penstock/record_files.h>

namespace penstock {

/// Which members of a sample become fields, and how.
struct TarOptions {
  /// By field, the extension of its member, as in {"label", "cls"}, or several of which the first
  /// that is there counts, as in {"image", "jpg;jpeg;png"}. Case does not matter. If there are
  /// none, each extension that all of the first 16 samples have is a field of that name.
  std::vector<std::pair<std::string, std::string>> fields = {};
  /// By field: bytes, string, or a number that the member has as text. Without one, the last part
  /// of the extension decides: cls, cls2, index, inx, id and count are i64; txt, text, transcript
  /// and json are string; all others are bytes.
  std::vector<std::pair<std::string, Dtype>> dtypes = {};
  /// Adds a field "__key__": what the names of the members have in common.
  bool key = false;
  RecordFileOptions files = {};
};

/// The samples of tar files: the members that follow each other and whose names are equal up to the
/// first dot of the last part, as in "a/17.jpg" and "a/17.cls". Paths are as for
/// `RecordFileOptions`. Read are ustar, pax, GNU tar and the older form, also several archives in
/// one file. Directories, hidden files, names without an extension and names like "__info__" belong
/// to no sample.
///
/// A sample fails if it lacks a field or has it twice, if a member is a link, a device, a pipe or a
/// sparse file, or has an absolute name or one with "..". After damage the rest of a file is one
/// sample that fails. Throws ConfigError for wrong options, IoError for files that cannot be read.
Dataset from_tar(const std::vector<std::string>& paths, const TarOptions& options = {});

}  // namespace penstock
