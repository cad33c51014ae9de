#pragma once
// The result of listing a folder of images or recordings, and its file format.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/dataset.h"
#include "penstock/io.h"
#include "source/file_table.h"

namespace penstock {

/// What the files of a folder are: names for users, and the extensions.
struct FileKind {
  std::string_view folder_word;  // the source of a folder: "image_folder"
  std::string_view list_word;    // the function that lists one: "list_images"
  std::string_view paths_word;   // the source of single files: "from_paths"
  std::string_view field;        // of the encoded file: "image"
  std::string_view plural;       // "images"
  std::vector<std::string> (*extensions)();
};
extern const FileKind kImageFiles;
extern const FileKind kAudioFiles;

/// Built once, then read by any thread.
struct FolderListing {
  explicit FolderListing(std::string root) : files(std::move(root)) {}
  FileTable files;
  std::vector<std::string> class_names;
  std::vector<FolderIndex::LeftOut> left_out;
  /// The options it was listed with: extensions in lower case, sorted; the other fields unchanged.
  FolderOptions options;
  const FileKind* kind = &kImageFiles;  // not part of the file format
};

/// Walks through the folder. Throws ConfigError if there are no files of this kind, IoError for an
/// error that may be transient.
FolderListing list_folder(Io& io, const std::string& root, const FolderOptions& options,
                          const FileKind& kind = kImageFiles);
/// The options in the form that FolderListing stores.
FolderOptions normal_options(const FolderOptions& options, const FileKind& kind = kImageFiles);
/// Lists a folder, or loads the index that the options name.
FolderIndex list_files_of(const FileKind& kind, const std::string& root,
                          const FolderOptions& options);

/// The listing as the bytes of a file, without its root.
std::string encode_listing(const FolderListing& listing);
/// The inverse; `bytes` may be anything.
Result<FolderListing> decode_listing(std::string_view bytes, const std::string& root);

/// "2 empty (cat/a.png, cat/b.png), 1 hidden (.thumbs)".
std::string left_out_text(const std::vector<FolderIndex::LeftOut>& left_out);

}  // namespace penstock
