#include "store/disk_rows.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/crc32c.h"
#include "base/fault.h"
#include "base/printable.h"
#include "base/report.h"
#include "sample/rows.h"

namespace penstock {
namespace {

constexpr std::uint64_t kRefreshMisses = 256;  // rows to compute, before looking at other processes
constexpr std::size_t kIndexRowsMin = 1024;    // fewer are found faster than an index is read
constexpr std::uint64_t kIndexBytesMax = std::uint64_t{8} << 30;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string join(const std::string& folder, std::string_view name) {
  return fmt::format("{}/{}", folder, name);
}

}  // namespace

/// Reads rows that follow each other in one file by one call.
class DiskRows::Reading {
 public:
  Reading(DiskRows& store, const BlockView& out, std::vector<std::uint32_t>& missing)
      : store_(store), out_(out), missing_(missing) {}

  static constexpr std::size_t kRowsMax = 64;
  static constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 20;

  void read(std::span<const Wanted> rows) {
    const RowFile& file = store_.file(rows.front().found.place.file);
    if (const auto done = read_bytes(file, rows); !done) {
      // A row of the group is beyond the end of the file, or all are.
      if (rows.size() > 1) {
        for (const Wanted& row : rows) read({&row, 1});
      } else if (done.failure().transient()) {
        missing_.push_back(rows.front().row);
      } else {
        lose(rows.front());
      }
      return;
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (!take(file, rows[i], i)) lose(rows[i]);
  }

 private:
  void lose(const Wanted& row) {
    store_.index_.remove(row.number, row.found.place);
    missing_.push_back(row.row);
  }

  /// Dense columns are read in place, other rows into a buffer.
  Result<void> read_bytes(const RowFile& file, std::span<const Wanted> rows) {
    parts_.clear();
    if (store_.codec_.fixed_bytes()) {
      headers_.resize(rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        parts_.push_back(std::as_writable_bytes(std::span(headers_[i])));
        for (const Column& column : out_.columns)
          if (column.row_bytes > 0)
            parts_.emplace_back(column.data + rows[i].row * column.row_bytes, column.row_bytes);
        const std::size_t padding = padding_after(rows[i].found.place.payload_bytes);
        if (i + 1 < rows.size() && padding > 0) parts_.emplace_back(padding_.data(), padding);
      }
    } else {
      std::uint64_t bytes = 0;
      for (const Wanted& row : rows) bytes += frame_bytes(row.found.place.payload_bytes);
      bytes -= padding_after(rows.back().found.place.payload_bytes);
      buffer_ = std::make_shared_for_overwrite<std::byte[]>(bytes);
      buffer_bytes_ = bytes;
      parts_.emplace_back(buffer_.get(), bytes);
    }
    return store_.settings_.io->read_parts(file.handle, rows.front().found.place.offset, parts_);
  }

  /// Checks row `i` of the group and completes it.
  bool take(const RowFile& file, const Wanted& row, std::size_t i) {
    const RowPlace& place = row.found.place;
    const bool fixed = store_.codec_.fixed_bytes().has_value();
    if (i == 0) at_ = 0;
    const std::string_view frame = fixed ? std::string_view(headers_[i].data(), kRowHeaderBytes)
                                         : text_of({buffer_.get(), buffer_bytes_}).substr(at_);
    at_ += frame_bytes(place.payload_bytes);
    const auto header = parse_row_header(frame, file.start.salt);
    if (!header || header->number != row.number || header->payload_bytes != place.payload_bytes ||
        header->sample_id >= store_.settings_.ids_max)
      return false;
    if (fixed) {
      if (!row.found.verified && crc_of_columns(row.row) != header->payload_crc) return false;
      for (const Column& column : out_.columns)
        if (column.others != nullptr) column.others[row.row] = Tensor();
    } else {
      const std::string_view payload = frame.substr(kRowHeaderBytes, place.payload_bytes);
      if (!row.found.verified && crc32c(payload) != header->payload_crc) return false;
      if (!store_.codec_.decode(payload, buffer_, out_, row.row)) return false;
    }
    if (!row.found.verified) store_.index_.set_verified(row.number, place);
    out_.identity.sample_id[row.row] = header->sample_id;
    if (out_.identity.occurrence != nullptr) out_.identity.occurrence[row.row] = header->occurrence;
    return true;
  }

  [[nodiscard]] std::uint32_t crc_of_columns(std::uint32_t row) const {
    std::uint32_t crc = 0;
    for (const Column& column : out_.columns)
      crc = crc32c(text_of({column.data + row * column.row_bytes, column.row_bytes}), crc);
    return crc;
  }

  DiskRows& store_;
  const BlockView& out_;
  std::vector<std::uint32_t>& missing_;
  std::vector<std::span<std::byte>> parts_;
  std::vector<RowHeaderBytes> headers_;
  std::shared_ptr<std::byte[]> buffer_;
  std::size_t buffer_bytes_ = 0;
  std::size_t at_ = 0;
  std::array<std::byte, 8> padding_{};
};

DiskRows::DiskRows(DiskRowsSettings settings)
    : settings_(std::move(settings)),
      codec_(settings_.header.data.spec),
      data_number_(settings_.header.data_number()),
      writers_(std::max<std::uint32_t>(1, settings_.files)),
      writing_(settings_.write),
      complete_(settings_.header.complete) {
  scan(true);
  if (settings_.write) remove_old_drafts(*settings_.io, settings_.folder);
}

DiskRows::~DiskRows() {
  if (settings_.write) publish_own_indexes();
}

std::shared_ptr<DiskRows> DiskRows::shared(const DiskRowsSettings& settings) {
  static Mutex mutex;
  static auto& stores = *new std::map<std::string, std::weak_ptr<DiskRows>>;
  // A folder that was removed and created again is another one.
  const auto entry = settings.io->look(settings.folder);
  const std::string key =
      fmt::format("{}:{}:{:x}:{}:{}", entry ? (*entry).device : 0, entry ? (*entry).inode : 0,
                  settings.header.data_number(), settings.write, settings.bytes_max);
  Lock lock(mutex);
  std::erase_if(stores, [](const auto& store) { return store.second.expired(); });
  if (auto found = stores[key].lock()) return found;
  auto made = std::make_shared<DiskRows>(settings);
  stores[key] = made;
  return made;
}

std::string DiskRows::text() const {
  const auto& rows = settings_.header.rows;
  return rows ? fmt::format("{} of {} rows on disk", index_.rows(), *rows)
              : fmt::format("{} rows on disk", index_.rows());
}

std::string DiskRows::stopped_because() {
  Lock lock(files_mutex_);
  return stopped_because_;
}

DiskRows::RowFile& DiskRows::file(std::uint32_t number) {
  Lock lock(files_mutex_);
  return files_[number];  // stays where it is
}

std::string DiskRows::file_of(std::uint64_t number) {
  const auto found = index_.find(number);
  return found ? file(found->place.file).handle.path() : settings_.folder;
}

std::vector<std::uint32_t> DiskRows::get(std::span<const std::uint64_t> numbers,
                                         std::span<const std::uint32_t> some,
                                         const BlockView& out) {
  std::vector<std::uint32_t> missing;
  std::vector<Wanted> group;
  Reading reading(*this, out, missing);
  std::uint64_t group_bytes = 0;
  const auto flush = [&] {
    if (!group.empty()) reading.read(group);
    group.clear();
    group_bytes = 0;
  };
  for (const std::uint32_t row : some) {
    const auto found = index_.find(numbers[row]);
    if (!found) {
      missing.push_back(row);
      continue;
    }
    const RowPlace& place = found->place;
    if (!group.empty()) {
      const RowPlace& last = group.back().found.place;
      const bool follows =
          place.file == last.file && place.offset == last.offset + frame_bytes(last.payload_bytes);
      if (!follows || group.size() == Reading::kRowsMax ||
          group_bytes + place.payload_bytes > Reading::kBytesMax)
        flush();
    }
    group.push_back({row, numbers[row], *found});
    group_bytes += frame_bytes(place.payload_bytes);
  }
  flush();
  std::ranges::sort(missing);
  if (!missing.empty() && misses_.fetch_add(missing.size()) + missing.size() >= kRefreshMisses) {
    misses_ = 0;
    refresh();
  }
  return missing;
}

void DiskRows::put(std::span<const std::uint64_t> numbers, const BlockView& block) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t i = 0; i < numbers.size(); ++i)
    if (!index_.has(numbers[i])) rows.push_back(i);
  for (std::size_t first = 0; first < rows.size();) {
    Writer& writer = writer_of(numbers[rows[first]]);
    std::size_t end = first + 1;
    while (end < rows.size() && &writer_of(numbers[rows[end]]) == &writer) ++end;
    if (full()) return;
    append(writer, numbers, block, std::span(rows).subspan(first, end - first));
    first = end;
  }
  declare_complete_if_so();
}

/// Each file has a range of the rows; without their number, blocks of rows alternate.
DiskRows::Writer& DiskRows::writer_of(std::uint64_t number) {
  constexpr std::uint64_t kBlock = 1024;
  const std::uint64_t files = writers_.size();
  if (files == 1) return writers_.front();
  const auto rows = settings_.header.rows.value_or(0);
  if (rows == 0) return writers_[number / kBlock % files];
  const std::uint64_t share = (rows + files - 1) / files;
  return writers_[std::min(number / share, files - 1)];
}

Result<void> DiskRows::open_writer(Writer& writer) {
  if (writer.out != nullptr && writer.process == ::getpid()) return {};
  const std::uint64_t salt = random_number();
  std::uint64_t sequence = 0;
  {
    Lock lock(files_mutex_);
    sequence = next_sequence_++;
  }
  const std::string name = row_file_name(sequence, salt);
  const std::string path = join(settings_.folder, name);
  auto out = settings_.io->create(path);
  if (!out) return std::move(out.failure());
  const RowFileStart start{salt, data_number_};
  const std::string text = row_file_start(start);
  const std::string_view part = text;
  if (auto done = (*out)->append({&part, 1}); !done) {
    (void)settings_.io->remove(path).ok();
    return done;
  }
  writer.out = std::move(*out);
  writer.end = text.size();
  writer.salt = salt;
  writer.process = ::getpid();
  bytes_ += text.size();
  Lock lock(files_mutex_);
  writer.file = static_cast<std::uint32_t>(files_.size());
  files_.emplace_back(name, path, start).own = true;
  known_[name] = writer.file;
  return {};
}

void DiskRows::append(Writer& writer, std::span<const std::uint64_t> numbers,
                      const BlockView& block, std::span<const std::uint32_t> rows) {
  std::uint64_t salt = 0;
  {
    Lock lock(writer.mutex);
    if (auto done = open_writer(writer); !done) return stop_writing(done.failure().message, true);
    salt = writer.salt;
  }
  // Checksums are computed outside of the lock.
  RowFrames frames;
  std::vector<StoredRow> stored;
  for (const std::uint32_t row : rows) {
    const std::uint64_t offset = frames.bytes;
    const auto bytes = codec_.encode(block, row, numbers[row], salt, frames);
    if (!bytes) continue;
    if (bytes_ + frames.bytes > settings_.bytes_max) {
      // The rows before it fit.
      frames.parts.resize(0);
      if (!stored.empty()) append(writer, numbers, block, rows.first(stored.size()));
      return stop_writing(fmt::format("the limit of {} bytes is reached", settings_.bytes_max),
                          false);
    }
    stored.push_back({numbers[row], offset, *bytes});
  }
  Lock lock(writer.mutex);
  if (writer.salt != salt) return;  // a fork began another file
  if (auto done = writer.out->append(frames.parts); !done)
    return stop_writing(done.failure().message, true);
  for (StoredRow& row : stored) row.offset += writer.end;
  writer.end += frames.bytes;
  bytes_ += frames.bytes;
  add_rows(writer.file, stored, false);
}

void DiskRows::stop_writing(const std::string& reason, bool is_failure) {
  if (!writing_.exchange(false)) return;
  {
    Lock lock(files_mutex_);
    stopped_because_ = reason;
  }
  if (settings_.quiet) return;
  report(fmt::format("{}: {}{}; it has {}, and the others are computed in every pass",
                     settings_.title, is_failure ? "cannot store more rows: " : "", reason,
                     text()));
}

void DiskRows::add_rows(std::uint32_t file, std::span<const StoredRow> rows, bool replace) {
  for (const StoredRow& row : rows) {
    if (settings_.header.rows && row.number >= *settings_.header.rows) continue;
    const auto bytes = codec_.fixed_bytes();
    if (bytes && row.payload_bytes != *bytes) continue;
    index_.add(row.number, {row.offset, file, static_cast<std::uint32_t>(row.payload_bytes)},
               replace);
  }
}

void DiskRows::refresh() {
  if (refreshing_.exchange(true)) return;
  scan(false);
  refreshing_ = false;
}

void DiskRows::scan(bool first) {
  auto listed = settings_.io->list(settings_.folder);
  if (!listed) {
    if (settings_.write) stop_writing(listed.failure().message, true);
    return;
  }
  std::ranges::sort(*listed, {}, &FolderEntry::name);
  std::map<std::string, const FolderEntry*> indexes;
  for (const FolderEntry& entry : *listed) indexes[entry.name] = &entry;
  std::uint64_t bytes = 0;
  for (const FolderEntry& entry : *listed) {
    const auto sequence = row_file_sequence(entry.name);
    if (!sequence || entry.kind != FolderEntry::Kind::file) continue;
    bytes += entry.bytes;
    std::optional<std::uint32_t> number;
    {
      Lock lock(files_mutex_);
      next_sequence_ = std::max(next_sequence_, *sequence + 1);
      if (const auto known = known_.find(entry.name); known != known_.end()) number = known->second;
    }
    if (!number) {
      const auto index = indexes.find(row_index_name(entry.name));
      add_file(entry, index == indexes.end() ? nullptr : &index->first);
    } else if (*number != UINT32_MAX) {
      RowFile& known = file(*number);
      if (!known.own && entry.bytes > known.seen_bytes)
        scan_file(known, *number, entry.bytes, false);
    }
  }
  // Own files have grown meanwhile; what they have beyond is counted again by the next scan.
  if (first)
    bytes_ = bytes;
  else
    bytes_ = std::max(bytes_.load(), bytes);
}

void DiskRows::add_file(const FolderEntry& entry, const std::string* index_entry) {
  Io& io = *settings_.io;
  const std::string path = join(settings_.folder, entry.name);
  if (entry.bytes < kRowFileStartBytes) return;  // a writer that has just begun, or was killed
  const auto bytes = io.read(path, 0, kRowFileStartBytes);
  if (!bytes) return;
  const auto start = parse_row_file_start(text_of(*bytes));
  RowFile* added = nullptr;
  std::uint32_t number = 0;
  {
    Lock lock(files_mutex_);
    if (!start || start->data != data_number_) {
      known_[entry.name] = UINT32_MAX;
      return;
    }
    number = static_cast<std::uint32_t>(files_.size());
    added = &files_.emplace_back(entry.name, path, *start);
    known_[entry.name] = number;
  }
  if (index_entry != nullptr) {
    const auto text =
        io.read_whole(join(settings_.folder, *index_entry), {.bytes_max = kIndexBytesMax});
    if (text) {
      if (const auto index = parse_row_file_index(text_of(*text), *start, entry.bytes)) {
        add_rows(number, index->rows, true);
        added->scanned_to = index->end;
      }
    }
  }
  scan_file(*added, number, entry.bytes, true);
}

void DiskRows::scan_file(RowFile& file, std::uint32_t number, std::uint64_t bytes, bool replace) {
  std::vector<StoredRow> rows;
  const bool whole = file.scanned_to == kRowFileStartBytes;
  const auto end =
      scan_rows(*settings_.io, file.handle, file.start.salt, file.scanned_to, bytes, rows);
  if (!end) return;
  add_rows(number, rows, replace);
  file.scanned_to = *end;
  file.seen_bytes = bytes;
  if (whole && settings_.write && rows.size() >= kIndexRowsMin) {
    const RowFileIndex index{file.start, *end, std::move(rows)};
    (void)settings_.io
        ->publish(join(settings_.folder, row_index_name(file.name)), row_file_index_text(index))
        .ok();
  }
}

/// Of rows that are elsewhere in the meantime the index says nothing, and they are not missed.
void DiskRows::publish_own_indexes() {
  std::map<std::uint32_t, RowFileIndex> indexes;
  for (Writer& writer : writers_) {
    Lock lock(writer.mutex);
    if (writer.out == nullptr || writer.process != ::getpid()) continue;
    indexes[writer.file] = {file(writer.file).start, writer.end, {}};
  }
  if (indexes.empty()) return;
  index_.for_each([&](std::uint64_t number, const RowPlace& place) {
    if (const auto found = indexes.find(place.file); found != indexes.end())
      found->second.rows.push_back({number, place.offset, place.payload_bytes});
  });
  for (auto& [number, index] : indexes) {
    if (index.rows.size() < kIndexRowsMin) continue;
    std::ranges::sort(index.rows, {}, &StoredRow::offset);
    (void)settings_.io
        ->publish(join(settings_.folder, row_index_name(file(number).name)),
                  row_file_index_text(index))
        .ok();
  }
}

void DiskRows::declare_complete_if_so() {
  const auto& rows = settings_.header.rows;
  if (!rows || settings_.header.build != 0 || settings_.quiet || index_.rows() < *rows) return;
  if (!full() && !complete_.exchange(true)) (void)declare_complete(*rows).ok();
}

Result<void> DiskRows::finish(std::uint64_t rows) {
  for (Writer& writer : writers_) {
    Lock lock(writer.mutex);
    if (writer.out == nullptr || writer.process != ::getpid()) continue;
    if (auto done = writer.out->flush(); !done) return done;
  }
  complete_ = true;
  return declare_complete(rows);
}

Result<void> DiskRows::declare_complete(std::uint64_t rows) {
  publish_own_indexes();
  RowsHeader header = settings_.header;
  header.rows = rows;
  header.complete = true;
  return publish_header(*settings_.io, settings_.folder, header);
}

}  // namespace penstock
