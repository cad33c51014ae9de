#pragma once
// Folders of images, as `Dataset::image_folder` reads them: which files they hold, found once and
// saved if wanted, and how they are listed.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace penstock {

struct FolderListing;

/// Which symbolic links below an image folder are followed, when it is listed and when a file is
/// opened.
enum class FollowLinks : std::uint8_t {
  never,
  inside,  // those that stay below the folder
  anywhere,
};
struct FolderOptions {
  /// Case-insensitive; default: jpg jpeg png webp bmp ppm pgm pbm npy.
  std::vector<std::string> extensions = {};
  FollowLinks follow_links = FollowLinks::inside;
  bool labels = true;      // false: no classes; images anywhere below, without a label
  bool with_path = false;  // adds the field path, relative to the folder
  std::string index = {};  // a file that FolderIndex::save wrote; the folder is then not listed
  std::uint64_t bytes_max = std::uint64_t{1} << 30;  // larger files fail without being read
};
struct ListOptions {
  bool hidden = false;  // wildcards also match names that begin with a dot
};
/// The images of a folder: names, sizes and classes, found without reading the images. Files are in
/// byte order of their relative names. Immutable and thread-safe; copies share the data.
class FolderIndex {
 public:
  /// Loads what `save` wrote, for the same folder on this or another machine. Throws ConfigError
  /// for any other file.
  static FolderIndex load(const std::string& file, const std::string& root);
  /// Writes names and sizes, without absolute paths. The file appears complete or not at all.
  void save(const std::string& file) const;
  /// Lists the folder again. Throws ConfigError naming the first file that is missing, new, or of a
  /// different size. Without this check, reading such a file fails.
  void check() const;

  [[nodiscard]] const std::string& root() const;
  [[nodiscard]] std::uint64_t files() const;
  [[nodiscard]] std::uint64_t bytes() const;
  /// The path of image number `file`, relative to the root.
  [[nodiscard]] std::string name(std::uint64_t file) const;
  /// Sorted; label i is class_names()[i].
  [[nodiscard]] const std::vector<std::string>& class_names() const;
  /// Number of images of each class.
  [[nodiscard]] std::vector<std::uint64_t> class_files() const;

  /// Entries of the folder that are not among the images.
  struct LeftOut {
    std::string reason;
    std::uint64_t count = 0;
    std::vector<std::string> first;  // at most five names, printable
  };
  [[nodiscard]] const std::vector<LeftOut>& left_out() const;
  /// "2 empty (cat/a.png, cat/b.png), 1 hidden (.thumbs)", or "" if nothing was left out.
  [[nodiscard]] std::string left_out_text() const;

  explicit FolderIndex(std::shared_ptr<const FolderListing> listing)
      : listing_(std::move(listing)) {}
  [[nodiscard]] const std::shared_ptr<const FolderListing>& listing() const { return listing_; }

 private:
  std::shared_ptr<const FolderListing> listing_;
};

/// Lists a folder of images: each folder directly in `root` that contains images, at any depth, is
/// a class. Hidden and empty files, other extensions and anything that cannot be an image are left
/// out and counted. Throws ConfigError if no image is found, or if there are images but no class
/// folders. Blocks until the folder is listed.
FolderIndex list_images(const std::string& root, const FolderOptions& options = {});

}  // namespace penstock
