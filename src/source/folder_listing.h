#pragma once
// The result of listing an image folder, and its file format.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/dataset.h"
#include "penstock/io.h"
#include "source/file_table.h"

namespace penstock {

/// Built once, then read by any thread.
struct FolderListing {
  explicit FolderListing(std::string root) : files(std::move(root)) {}
  FileTable files;
  std::vector<std::string> class_names;
  std::vector<FolderIndex::LeftOut> left_out;
  /// The options it was listed with: extensions in lower case, sorted; the other fields unchanged.
  FolderOptions options;
};

/// Walks through the folder. Throws ConfigError if there are no images, IoError for an error that
/// may be transient.
FolderListing list_folder(Io& io, const std::string& root, const FolderOptions& options);
/// The options in the form that FolderListing stores.
FolderOptions normal_options(const FolderOptions& options);

/// The listing as the bytes of a file, without its root.
std::string encode_listing(const FolderListing& listing);
/// The inverse; `bytes` may be anything.
Result<FolderListing> decode_listing(std::string_view bytes, const std::string& root);

/// "2 empty (cat/a.png, cat/b.png), 1 hidden (.thumbs)".
std::string left_out_text(const std::vector<FolderIndex::LeftOut>& left_out);

}  // namespace penstock
