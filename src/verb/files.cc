// Datasets of files.
#include <fmt/format.h>

#include "base/printable.h"
#include "base/report.h"
#include "penstock/io.h"
#include "source/folder_listing.h"
#include "verb/catalogue.h"
#include "verb/source.h"

namespace penstock {

Dataset Dataset::image_folder(const std::string& root, const FolderOptions& options) {
  const FolderIndex index = list_images(root, options);
  if (!index.left_out().empty())
    report(fmt::format("image_folder {}: {} images; left out: {}", printable(root), index.files(),
                       index.left_out_text()));
  return image_folder(index, options.with_path);
}

Dataset Dataset::image_folder(const FolderIndex& index, bool with_path) {
  return from_source(make_image_folder(index.listing(), with_path), {});
}

Dataset Dataset::from_paths(const std::vector<std::string>& paths,
                            const std::vector<std::int64_t>& labels) {
  return from_source(make_from_paths(Io::real(), paths, labels), {});
}

Dataset Dataset::list_files(const std::string& pattern, const ListOptions& options) {
  return from_source(make_list_files(Io::real(), pattern, options), {});
}

/// Lists the folder again; the order digest of the plan tells whether it is the same.
Dataset parse_image_folder(const Parsed& parsed) {
  FolderOptions options;
  options.extensions = parsed.at("extensions").get<std::vector<std::string>>();
  options.follow_links =
      static_cast<FollowLinks>(whole_number<unsigned>(parsed.at("follow_links")) % 3);
  options.labels = parsed.flag("labels");
  options.with_path = parsed.flag("with_path");
  if (parsed.arguments.contains("bytes_max")) options.bytes_max = parsed.count("bytes_max");
  return Dataset::image_folder(parsed.text("root"), options);
}

Dataset parse_from_paths(const Parsed& parsed) {
  return Dataset::from_paths(parsed.at("paths").get<std::vector<std::string>>(),
                             whole_numbers<std::int64_t>(parsed.at("labels")));
}

Dataset parse_list_files(const Parsed& parsed) {
  return Dataset::list_files(parsed.text("pattern"), {parsed.flag("hidden")});
}

}  // namespace penstock
