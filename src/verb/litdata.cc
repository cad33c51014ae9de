// tested in src/feed/litdata_test.cc
#include "penstock/litdata.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/printable.h"
#include "penstock/error.h"
#include "penstock/io.h"
#include "record/litdata.h"
#include "source/file_table.h"
#include "source/record_files.h"
#include "source/record_source.h"
#include "verb/catalogue.h"
#include "verb/source.h"

namespace penstock {
namespace {

constexpr std::uint64_t kIndexBytesMax = std::uint64_t{1} << 30;
constexpr const char* kCopyAgain = "copy the chunk again";

[[noreturn]] void refuse(const std::string& path, const std::string& reason,
                         const std::string& remedy) {
  Where where;
  where.file = path;
  throw ConfigError(fmt::format("from_litdata: {} {}", printable(path), reason), where, remedy);
}

/// The numbers in front of the items.
std::uint64_t header_bytes(const LitDataChunk& chunk) {
  return sizeof(std::uint32_t) * (chunk.items + 2);
}

/// The name of a chunk that is compressed as a whole, once it is decompressed.
std::string plain_name(const LitDataIndex& index, const std::string& name) {
  const std::string ending = fmt::format(".{}.bin", index.compression);
  if (index.compression.empty() || !name.ends_with(ending)) return name;
  return name.substr(0, name.size() - ending.size()) + ".bin";
}

FoundFile find_chunk(Io& io, const std::string& folder, const LitDataIndex& index,
                     const LitDataChunk& chunk) {
  const std::string name = plain_name(index, chunk.name);
  const std::string path = join_path(folder, name);
  const Result<FolderEntry> entry = io.look(path);
  if (!entry.ok() && name != chunk.name)
    refuse(join_path(folder, chunk.name), "is compressed as a whole, and is not read",
           fmt::format("decompress the chunks beside their index, as with `zstd -d {} -o {}`",
                       printable(chunk.name), printable(name)));
  if (!entry.ok())
    refuse(path, fmt::format("is missing: {}", entry.failure().message),
           "copy all chunks that index.json lists");
  const FolderEntry& found = *entry;
  // Older versions did not count the numbers in front of the items.
  const bool agrees =
      found.bytes == chunk.bytes || found.bytes == chunk.bytes + header_bytes(chunk);
  if (found.kind != FolderEntry::Kind::file || !agrees)
    refuse(path, fmt::format("has {} bytes, and index.json says {}", found.bytes, chunk.bytes),
           kCopyAgain);
  return {path, found.bytes, found.modified_ns};
}

std::string text_at(Io& io, const FileHandle& file, std::uint64_t offset) {
  std::string text(std::min<std::uint64_t>(8, file.bytes() - offset), '\0');
  const auto done =
      io.read_at(file, offset, std::as_writable_bytes(std::span(text.data(), text.size())));
  return done.ok() ? text : "";
}

/// Throws if the chunk has another form than the one that is read, which may look like damage.
void refuse_other_forms(Io& io, const FileHandle& file) {
  if (text_at(io, file, 0).starts_with("LDFZ01"))
    refuse(file.path(), "has its items in frames of zstd, which are not read",
           "write the data again without `compression`, or with `compression_level=\"sample\"`");
  if (file.bytes() >= 8 && text_at(io, file, file.bytes() - 8).starts_with("LDARW01"))
    refuse(file.path(), "has its items as rows of Arrow, which only the Python package reads",
           "read them there, without `shapes`, or write them again where pyarrow is not installed");
}

/// How many samples a chunk must have.
std::uint64_t samples_of(const LitDataChunk& chunk, const LitDataOptions& options) {
  return options.length == 0 ? chunk.items : chunk.tokens / options.length;
}

void check_chunks(Io& io, const LitDataIndex& index, const LitDataOptions& options,
                  const RecordFiles& files) {
  for (std::size_t i = 0; i < index.chunks.size(); ++i) {
    const LitDataChunk& chunk = index.chunks[i];
    const FileHandle& file = *files.files()[i].handle;
    const RecordIndex& records = files.files()[i].index;
    if (!records.damage.empty()) {
      refuse_other_forms(io, file);
      refuse(file.path(), "is damaged: " + records.damage, kCopyAgain);
    }
    const std::uint64_t tokens = chunk.tokens * litdata_token_bytes(index);
    if (index.tokens && file.bytes() - std::min(file.bytes(), header_bytes(chunk)) != tokens)
      refuse(file.path(), fmt::format("has not the {} tokens that index.json says", chunk.tokens),
             kCopyAgain);
    if (records.size() != samples_of(chunk, options))
      refuse(file.path(),
             fmt::format("has {} samples, and index.json says {}", records.size(),
                         samples_of(chunk, options)),
             kCopyAgain);
  }
}

}  // namespace

Dataset from_litdata(const std::string& folder, const LitDataOptions& options) {
  Io& io = Io::real();
  const std::string path = join_path(folder, "index.json");
  const Result<std::string> text = io.read_text(path, kIndexBytesMax);
  if (!text.ok())
    refuse(path, fmt::format("cannot be read: {}", text.failure().message),
           "name the folder that holds index.json");
  const LitDataIndex index = parse_litdata_index(*text, path);
  const RecordKind kind = litdata_kind(index, options);
  std::vector<FoundFile> found;
  found.reserve(index.chunks.size());
  for (const LitDataChunk& chunk : index.chunks)
    found.push_back(find_chunk(io, folder, index, chunk));
  // Where items begin is read from the chunks faster than from a file of our own.
  const auto files =
      std::make_shared<const RecordFiles>(io, kind, found, RecordFileOptions{.index = "memory"});
  check_chunks(io, index, options, *files);
  const Json arguments = {{"folder", folder},
                          {"fields", options.fields},
                          {"shapes", options.shapes},
                          {"length", options.length}};
  auto decoder = kind.decoder(files->first_records(io, kind));
  return from_source(make_record_source({.word = kind.word,
                                         .files = files,
                                         .decoder = std::move(decoder),
                                         .arguments = std::make_shared<const Json>(arguments)}),
                     {});
}

Dataset parse_from_litdata(const Parsed& parsed) {
  LitDataOptions options;
  options.fields = parsed.at("fields").get<std::vector<std::string>>();
  options.shapes = parsed.at("shapes").get<std::map<std::string, Shape>>();
  options.length = parsed.count("length");
  return from_litdata(parsed.text("folder"), options);
}

}  // namespace penstock
