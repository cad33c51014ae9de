// tested in src/feed/tfrecord_test.cc
#include "penstock/tfrecord.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "penstock/io.h"
#include "record/example.h"
#include "record/tfds_features.h"
#include "record/tfrecord_kind.h"
#include "verb/record_dataset.h"

namespace penstock {
namespace {

constexpr const char* kWord = "from_tfrecord";

// Arguments for other processes.

std::string hex_of(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

std::vector<std::byte> bytes_of(const std::string& hex) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::vector<std::byte> bytes(hex.size() / 2);
  for (std::size_t i = 0; i < 2 * bytes.size(); ++i) {
    const std::size_t digit = kDigits.find(hex[i]);
    if (digit == std::string_view::npos)
      throw ConfigError(fmt::format("{}: a value for missing ones is damaged", kWord));
    bytes[i / 2] = bytes[i / 2] << 4 | static_cast<std::byte>(digit);
  }
  return bytes;
}

Dtype dtype_named(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(Dtype::string); ++i)
    if (dtype_name(static_cast<Dtype>(i)) == name) return static_cast<Dtype>(i);
  throw ConfigError(fmt::format("{}: dtype \"{}\" is not known", kWord, printable(name)));
}

Json written(const ExampleFeature& feature) {
  Json json{{"name", feature.name},
            {"dtype", dtype_name(feature.dtype)},
            {"shape", feature.shape},
            {"sequence", feature.sequence},
            {"raw", feature.raw}};
  if (feature.missing)
    json["missing"] = {{"shape", feature.missing->shape()},
                       {"bytes", hex_of(feature.missing->raw())}};
  return json;
}

ExampleFeature read_feature_of(const Json& json) {
  ExampleFeature feature;
  feature.name = json.at("name").get<std::string>();
  feature.dtype = dtype_named(json.at("dtype").get<std::string>());
  feature.shape = whole_numbers<std::int64_t>(json.at("shape"));
  feature.sequence = json.at("sequence").get<bool>();
  feature.raw = json.at("raw").get<bool>();
  if (json.contains("missing")) {
    const Json& missing = json.at("missing");
    feature.missing = Tensor::copy(feature.dtype, whole_numbers<std::int64_t>(missing.at("shape")),
                                   bytes_of(missing.at("bytes").get<std::string>()));
  }
  return feature;
}

/// What is read of which files.
struct TfrecordRequest {
  RecordArguments files;
  std::vector<ExampleFeature> features;  // empty: to be inferred
  std::string notes;
  bool raw = false;
};

Dataset read_tfrecord(TfrecordRequest request) {
  const RecordKind kind = request.raw ? tfrecord_kind_raw()
                          : request.features.empty()
                              ? tfrecord_kind_inferred()
                              : tfrecord_kind(request.features, request.notes);
  Json features = Json::array();
  for (const ExampleFeature& feature : request.features) features.push_back(written(feature));
  request.files.others = {
      {"features", std::move(features)}, {"notes", request.notes}, {"raw", request.raw}};
  return record_dataset(kind, request.files);
}

// Folders of TensorFlow Datasets.

constexpr std::string_view kFeaturesFile = "features.json";

std::string in_folder(const std::string& folder, std::string_view name) {
  return fmt::format("{}{}{}", folder, folder.ends_with('/') ? "" : "/", name);
}

bool has_features(Io& io, const std::string& path) {
  const auto folder = io.look(path);
  if (!folder || (*folder).kind != FolderEntry::Kind::folder) return false;
  const auto file = io.look(in_folder(path, kFeaturesFile));
  return file && (*file).kind == FolderEntry::Kind::file;
}

/// The files of one split, which are called "mnist-train.tfrecord-00000-of-00001".
std::vector<std::string> files_of_split(Io& io, const std::string& folder,
                                        const std::string& wanted) {
  const auto listed = io.list(folder);
  if (!listed) throw IoError(fmt::format("{}: {}", kWord, listed.failure().message));
  std::map<std::string, std::vector<std::string>> splits;
  for (const FolderEntry& entry : *listed) {
    const std::size_t end = entry.name.find(".tfrecord");
    if (entry.name.starts_with('.') || end == std::string::npos ||
        entry.kind == FolderEntry::Kind::folder)
      continue;
    const std::string stem = entry.name.substr(0, end);
    splits[stem.substr(stem.rfind('-') + 1)].push_back(in_folder(folder, entry.name));
  }
  Where where;
  where.file = folder;
  if (splits.empty())
    throw ConfigError(
        fmt::format("{}: the folder has {}, but no *.tfrecord* files", kWord, kFeaturesFile), where,
        "check the folder: it is that of one version, as in mnist/3.0.1");
  const auto split = wanted.empty() && splits.size() == 1 ? splits.begin() : splits.find(wanted);
  if (split == splits.end()) {
    std::vector<std::string> names;
    names.reserve(splits.size());
    for (const auto& [name, files] : splits) names.push_back(printable(name));
    throw ConfigError(wanted.empty() ? fmt::format("{}: the folder has several splits", kWord)
                                     : fmt::format("{}: no split \"{}\"", kWord, printable(wanted)),
                      where, fmt::format("choose one of the splits: {}", fmt::join(names, ", ")));
  }
  std::ranges::sort(split->second);
  return split->second;
}

TfdsFeatures features_of_folder(Io& io, const std::string& folder) {
  constexpr std::uint64_t kBytesMax = std::uint64_t{64} << 20;
  const std::string file = in_folder(folder, kFeaturesFile);
  const auto json = io.read_text(file, kBytesMax);
  if (!json) throw IoError(fmt::format("{}: {}", kWord, json.failure().message));
  return parse_tfds_features(*json, file);
}

/// Replaces folders by their files, and finds out what they hold if that was not declared.
void add_folders(Io& io, const TfrecordOptions& options, TfrecordRequest& request) {
  const bool declared = options.raw || !options.features.empty();
  std::vector<std::string> paths;
  std::optional<std::string> first;
  for (const std::string& path : request.files.paths) {
    if (!has_features(io, path)) {
      paths.push_back(path);
      continue;
    }
    for (std::string& file : files_of_split(io, path, options.split))
      paths.push_back(std::move(file));
    TfdsFeatures found;
    if (!declared) found = features_of_folder(io, path);
    Json now = Json::array();
    Json before = Json::array();
    for (const ExampleFeature& feature : found.features) now.push_back(written(feature));
    for (const ExampleFeature& feature : request.features) before.push_back(written(feature));
    if (!declared && first && now != before) {
      Where where;
      where.file = path;
      throw ConfigError(fmt::format("{}: {} has other features than {}", kWord, printable(path),
                                    printable(*first)),
                        where, "name the features to read");
    }
    first = first.value_or(path);
    if (declared) continue;
    request.features = std::move(found.features);
    request.notes =
        fmt::format("read as {} says{}{}", kFeaturesFile,
                    found.left_out.empty() ? "" : "; left out: ", fmt::join(found.left_out, ", "));
  }
  if (!first && !options.split.empty())
    throw ConfigError(fmt::format("{}: no path is a folder of TensorFlow Datasets, of which a "
                                  "split could be read",
                                  kWord),
                      {}, "name the files of the split");
  request.files.paths = std::move(paths);
}

}  // namespace

Dataset from_tfrecord(const std::vector<std::string>& paths, const TfrecordOptions& options) {
  if (options.raw && !options.features.empty())
    throw ConfigError(fmt::format("{}: raw records have no features", kWord), {},
                      "leave out raw, or the features");
  TfrecordRequest request;
  request.files = {paths, options.files};
  request.features = options.features;
  request.raw = options.raw;
  add_folders(Io::real(), options, request);
  return read_tfrecord(std::move(request));
}

Dataset parse_from_tfrecord(const Parsed& parsed) {
  TfrecordRequest request;
  request.files = parse_record_arguments(parsed);
  for (const Json& feature : parsed.at("features"))
    request.features.push_back(read_feature_of(feature));
  request.notes = parsed.text("notes");
  request.raw = parsed.flag("raw");
  return read_tfrecord(std::move(request));
}

}  // namespace penstock
