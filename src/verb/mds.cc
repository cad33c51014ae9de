// tested in src/feed/mds_test.cc
#include "penstock/mds.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "penstock/error.h"
#include "penstock/io.h"
#include "record/mds.h"
#include "source/file_table.h"
#include "source/record_files.h"
#include "source/record_source.h"
#include "verb/catalogue.h"
#include "verb/source.h"

namespace penstock {
namespace {

constexpr std::uint64_t kIndexBytesMax = std::uint64_t{1} << 30;

[[noreturn]] void refuse(const std::string& path, const std::string& reason,
                         const std::string& remedy) {
  Where where;
  where.file = path;
  throw ConfigError(fmt::format("from_mds: {} {}", printable(path), reason), where, remedy);
}

FoundFile find_shard(Io& io, const std::string& folder, const MdsShard& shard) {
  const std::string path = join_path(folder, shard.name);
  const Result<FolderEntry> entry = io.look(path);
  if (!entry.ok()) {
    if (shard.compressed_name.empty())
      refuse(path, fmt::format("is missing: {}", entry.failure().message),
             "copy all shards that index.json lists");
    refuse(path,
           fmt::format("is missing; {} is a compressed form of it, which is not read",
                       printable(shard.compressed_name)),
           "decompress the shards beside their index, as with `zstd -d`");
  }
  const FolderEntry& found = *entry;
  if (found.kind != FolderEntry::Kind::file || found.bytes != shard.bytes)
    refuse(path, fmt::format("has {} bytes, and index.json says {}", found.bytes, shard.bytes),
           "copy the shard again");
  return {path, found.bytes, found.modified_ns};
}

}  // namespace

Dataset from_mds(const std::string& folder, const MdsOptions& options) {
  Io& io = Io::real();
  const std::string path = join_path(folder, "index.json");
  const Result<std::string> text = io.read_text(path, kIndexBytesMax);
  if (!text.ok())
    refuse(path, fmt::format("cannot be read: {}", text.failure().message),
           "name the folder that holds index.json");
  const MdsIndex index = parse_mds_index(*text, path);
  const RecordKind kind = mds_kind(index, options);
  std::vector<FoundFile> found;
  for (const MdsShard& shard : index.shards) found.push_back(find_shard(io, folder, shard));
  // Where samples begin is read from the shards faster than from a file of our own.
  const auto files =
      std::make_shared<const RecordFiles>(io, kind, found, RecordFileOptions{.index = "memory"});
  for (std::size_t i = 0; i < found.size(); ++i) {
    const RecordIndex& shard = files->files()[i].index;
    if (!shard.damage.empty())
      refuse(found[i].path, "is damaged: " + shard.damage, "copy the shard again");
    if (shard.size() != index.shards[i].samples)
      refuse(found[i].path,
             fmt::format("has {} samples, and index.json says {}", shard.size(),
                         index.shards[i].samples),
             "copy the shard again");
  }
  const Json arguments = {
      {"folder", folder}, {"columns", options.columns}, {"shapes", options.shapes}};
  auto decoder = kind.decoder(files->first_records(io, kind));
  return from_source(make_record_source({.word = kind.word,
                                         .files = files,
                                         .decoder = std::move(decoder),
                                         .arguments = std::make_shared<const Json>(arguments)}),
                     {});
}

Dataset parse_from_mds(const Parsed& parsed) {
  MdsOptions options;
  options.columns = parsed.at("columns").get<std::vector<std::string>>();
  options.shapes = parsed.at("shapes").get<std::map<std::string, Shape>>();
  return from_mds(parsed.text("folder"), options);
}

}  // namespace penstock
