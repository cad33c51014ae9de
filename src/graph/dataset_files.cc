// Datasets of files.
#include <fmt/format.h>

#include "base/io.h"
#include "base/printable.h"
#include "base/report.h"
#include "graph/node.h"
#include "source/folder_listing.h"

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

std::vector<std::string> Dataset::class_names() const {
  for (const Node* node = node_.get(); node != nullptr;
       node = node->inputs.empty() ? nullptr : node->inputs.front().get())
    if (const auto* source = node->as<SourceVerb>()) return source->source->class_names();
  return {};
}

}  // namespace penstock
