// Datasets of files.
#include <fmt/format.h>

#include "base/printable.h"
#include "base/report.h"
#include "penstock/audio.h"
#include "penstock/io.h"
#include "source/folder_listing.h"
#include "verb/catalogue.h"
#include "verb/source.h"

namespace penstock {

namespace {

Dataset listed_folder(const FileKind& kind, const std::string& root, const FolderOptions& options) {
  const FolderIndex index = list_files_of(kind, root, options);
  if (!index.left_out().empty())
    report(fmt::format("{} {}: {} {}; left out: {}", kind.folder_word, printable(root),
                       index.files(), kind.plural, index.left_out_text()));
  return from_source(make_file_folder(kind, index.listing(), options.with_path), {});
}

/// Lists the folder again; the order digest of the plan tells whether it is the same.
Dataset parse_folder(const FileKind& kind, const Parsed& parsed) {
  FolderOptions options;
  options.extensions = parsed.at("extensions").get<std::vector<std::string>>();
  options.follow_links =
      static_cast<FollowLinks>(whole_number<unsigned>(parsed.at("follow_links")) % 3);
  options.labels = parsed.flag("labels");
  options.with_path = parsed.flag("with_path");
  if (parsed.arguments.contains("bytes_max")) options.bytes_max = parsed.count("bytes_max");
  return listed_folder(kind, parsed.text("root"), options);
}

Dataset parse_paths(const FileKind& kind, const Parsed& parsed) {
  return from_source(
      make_from_paths(kind, Io::real(), parsed.at("paths").get<std::vector<std::string>>(),
                      whole_numbers<std::int64_t>(parsed.at("labels"))),
      {});
}

}  // namespace

Dataset Dataset::image_folder(const std::string& root, const FolderOptions& options) {
  return listed_folder(kImageFiles, root, options);
}

Dataset Dataset::image_folder(const FolderIndex& index, bool with_path) {
  return from_source(make_file_folder(kImageFiles, index.listing(), with_path), {});
}

Dataset Dataset::from_paths(const std::vector<std::string>& paths,
                            const std::vector<std::int64_t>& labels) {
  return from_source(make_from_paths(kImageFiles, Io::real(), paths, labels), {});
}

Dataset audio_folder(const std::string& root, const FolderOptions& options) {
  return listed_folder(kAudioFiles, root, options);
}

Dataset audio_folder(const FolderIndex& index, bool with_path) {
  return from_source(make_file_folder(kAudioFiles, index.listing(), with_path), {});
}

Dataset audio_files(const std::vector<std::string>& paths,
                    const std::vector<std::int64_t>& labels) {
  return from_source(make_from_paths(kAudioFiles, Io::real(), paths, labels), {});
}

Dataset Dataset::list_files(const std::string& pattern, const ListOptions& options) {
  return from_source(make_list_files(Io::real(), pattern, options), {});
}

Dataset parse_image_folder(const Parsed& parsed) {
  return parse_folder(kImageFiles, parsed);
}
Dataset parse_audio_folder(const Parsed& parsed) {
  return parse_folder(kAudioFiles, parsed);
}

Dataset parse_from_paths(const Parsed& parsed) {
  return parse_paths(kImageFiles, parsed);
}
Dataset parse_audio_files(const Parsed& parsed) {
  return parse_paths(kAudioFiles, parsed);
}

Dataset parse_list_files(const Parsed& parsed) {
  return Dataset::list_files(parsed.text("pattern"), {parsed.flag("hidden")});
}

}  // namespace penstock
