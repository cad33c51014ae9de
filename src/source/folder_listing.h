#pragma once
// What image_folder finds, and how it is kept in a file.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/io.h"
#include "penstock/dataset.h"
#include "source/file_table.h"

namespace penstock {

/// Built once, then read by any thread.
struct FolderListing {
  explicit FolderListing(std::string root) : files(std::move(root)) {}
  FileTable files;
  std::vector<std::string> class_names;
  std::vector<FolderIndex::LeftOut> left_out;
  /// What it was listed with: extensions in small letters, sorted; the other fields as given.
  FolderOptions options;
};

/// Walks through the folder. Throws ConfigError when there is nothing for us, IoError when a folder
/// could not be listed now but may be later.
FolderListing list_folder(Io& io, const std::string& root, const FolderOptions& options);
/// The options as FolderListing keeps them.
FolderOptions normal_options(const FolderOptions& options);

/// The listing as the bytes of a file, without its root.
std::string encode_listing(const FolderListing& listing);
/// The other way round; `bytes` may be anything.
Result<FolderListing> decode_listing(std::string_view bytes, const std::string& root);

/// "2 empty (cat/a.png, cat/b.png), 1 hidden (.thumbs)".
std::string left_out_text(const std::vector<FolderIndex::LeftOut>& left_out);

}  // namespace penstock
