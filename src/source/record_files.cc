#include "source/record_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "base/report.h"
#include "penstock/error.h"
#include "source/build_indexes.h"

namespace penstock {
namespace {

/// Throws what `failure` says about a file that was about to be read.
[[noreturn]] void refuse(const std::string& word, const FileHandle& file, const Failure& failure) {
  Where where;
  where.file = file.path();
  throw IoError(fmt::format("{}: {}", word, failure.message), where, failure.remedy);
}

std::string read_text(Io& io, const std::string& word, const FileHandle& file,
                      const RecordSpan& span) {
  std::string text(span.bytes, '\0');
  if (const auto done = io.read_at(file, span.offset,
                                   std::as_writable_bytes(std::span(text.data(), text.size())));
      !done)
    refuse(word, file, done.failure());
  return text;
}

void report_damage(const std::string& word, const std::vector<RecordFiles::File>& files) {
  for (const RecordFiles::File& file : files) {
    if (file.index.damage.empty()) continue;
    const RecordSpan last = file.index.at(file.index.size() - 1);
    report(fmt::format(
        "{}: {} is damaged at byte {}: {}; the rest of the file, {} bytes, counts "
        "as one record, which fails",
        word, printable(file.handle->path()), last.offset, file.index.damage, last.bytes));
  }
}

}  // namespace

RecordFiles::RecordFiles(Io& io, const RecordKind& kind, const std::vector<FoundFile>& files,
                         const RecordFileOptions& options) {
  std::vector<std::shared_ptr<const FileHandle>> handles;
  std::vector<std::string> paths;
  for (const FoundFile& file : files) {
    handles.push_back(std::make_shared<const FileHandle>(file.path, file.bytes, file.modified_ns));
    paths.push_back(file.path);
  }
  std::vector<RecordIndex> indexes = build_indexes(io, kind, handles, options);
  const std::string folder = shared_folder(paths);
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    end += indexes[i].size();
    files_.push_back(
        {std::move(handles[i]), paths[i].substr(folder.size()), std::move(indexes[i]), end});
  }
  report_damage(kind.word, files_);
}

RecordFiles::Place RecordFiles::at(std::uint64_t number) const {
  const auto file = std::ranges::upper_bound(files_, number, {}, &File::end);
  const std::uint64_t record = number - (file->end - file->index.size());
  return {&*file, record, file->index.at(record)};
}

std::uint64_t RecordFiles::bytes() const {
  std::uint64_t bytes = 0;
  for (const File& file : files_) bytes += file.handle->bytes();
  return bytes;
}

std::uint64_t RecordFiles::memory_bytes() const {
  std::uint64_t bytes = 0;
  for (const File& file : files_) bytes += file.index.starts.memory_bytes();
  return bytes;
}

void RecordFiles::identify(Digest& digest) const {
  for (const File& file : files_) {
    digest.add(file.name);
    digest.add(file.handle->bytes());
    digest.add(file.index.size());
  }
}

FirstRecords RecordFiles::first_records(Io& io, const RecordKind& kind) const {
  constexpr std::uint64_t kBytesMax = std::uint64_t{64} << 20;
  FirstRecords first;
  if (files_.empty()) return first;
  auto file = std::ranges::find_if(files_, [](const File& each) { return each.index.size() > 0; });
  if (file == files_.end()) file = files_.begin();
  first.file = file->handle->path();
  if (kind.has_preface) first.preface = preface_of(io, kind.word, *file);
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(kind.infer_records, file->index.size());
       ++i) {
    const RecordSpan span = file->index.at(i);
    bytes += span.bytes;
    // A file of few, huge records: the first ones say enough.
    if (bytes > kBytesMax) break;
    first.records.push_back(read_text(io, kind.word, *file->handle, span));
  }
  first.whole_file = first.records.size() == file->index.size();
  return first;
}

std::string RecordFiles::preface_of(Io& io, const std::string& word, const File& file) {
  constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 20;
  const std::uint64_t bytes = file.index.preface_bytes();
  if (bytes > kBytesMax)
    throw ConfigError(fmt::format("{}: {} has {} bytes before its first record", word,
                                  printable(file.handle->path()), bytes),
                      {}, "check the format of the file");
  return read_text(io, word, *file.handle, {0, bytes});
}

}  // namespace penstock
