// tested in tests/command_test.py
#include "input.h"

#include <fmt/core.h>

#include <string_view>

#include "base/printable.h"
#include "penstock/io.h"
#include "penstock/penstock.h"

namespace penstock::cli {
namespace {

/// Without what a compression adds.
std::string_view plain_name(std::string_view path) {
  for (const std::string_view end : {".gz", ".zst"})
    if (path.ends_with(end)) path.remove_suffix(end.size());
  return path;
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> ends) {
  for (const std::string_view end : ends)
    if (name.ends_with(end)) return true;
  return false;
}

}  // namespace

Dataset open_input(const std::string& path) {
  const auto entry = Io::real().look(path);
  if (entry && (*entry).kind == FolderEntry::Kind::folder) {
    if (Io::real().look(path + "/dataset.json")) return Dataset::load(path);
    return Dataset::image_folder(path);
  }
  const std::string_view name = plain_name(path);
  if (ends_with_any(name, {".tar"})) return from_tar({path});
  if (ends_with_any(name, {".csv"})) return from_csv({path});
  if (ends_with_any(name, {".tsv"})) return from_csv({path}, {.delimiter = '\t'});
  if (ends_with_any(name, {".jsonl", ".ndjson"})) return from_jsonl({path});
  if (ends_with_any(name, {".npy", ".npz"})) return from_npy({path});
  if (ends_with_any(name, {".txt"})) return from_text({path});
  if (name.find("tfrecord") != std::string_view::npos) return from_tfrecord({path});
  throw ConfigError(
      fmt::format("{} is neither a folder nor a file of a known kind", printable(path)), {},
      "name a folder of images, or files that end in .tfrecord, .tar, .csv, .tsv, "
      ".jsonl, .npy, .npz or .txt");
}

}  // namespace penstock::cli
