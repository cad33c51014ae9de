#include "source/record_stream.h"

#include <algorithm>
#include <utility>

#include "source/record_source.h"

namespace penstock {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{256} << 10;
constexpr std::uint64_t kPrefaceMax = std::uint64_t{1} << 20;

}  // namespace

void RecordStream::skip_to(std::size_t file, std::uint64_t number) {
  file_ = file;
  skip_before_ = number;
}

void RecordStream::open(std::size_t file) {
  open_ = true;
  decompressor_ = files_.files[file].compression == Compression::none
                      ? nullptr
                      : Decompressor::make(files_.files[file].compression);
  scanner_ = files_.kind.scanner();
  input_.clear();
  input_used_ = 0;
  input_offset_ = 0;
  text_.clear();
  text_offset_ = 0;
  kept_from_ = 0;
  scan_from_ = 0;
  starts_.clear();
  end_.reset();
  preface_known_ = false;
  preface_.clear();
  too_large_ = false;
  number_ = 0;
}

std::optional<RecordStream::Record> RecordStream::next() {
  while (file_ < files_.files.size()) {
    if (!open_) open(file_);
    if (auto done = read_record(); !done) return fail(std::move(done.failure()));
    if (starts_.empty()) {
      open_ = false;
      ++file_;
      skip_before_ = 0;
      continue;
    }
    const std::uint64_t end = starts_.size() > 1 ? starts_[1] : end_->end;
    if (number_ < skip_before_) {
      forget(end);
      starts_.pop_front();
      too_large_ = false;
      ++number_;
      continue;
    }
    return take(end);
  }
  return std::nullopt;
}

RecordStream::Record RecordStream::take(std::uint64_t end) {
  Record record{.file = file_, .number = number_, .offset = starts_.front()};
  forget(record.offset);
  if (too_large_ || end - record.offset > files_.record_bytes_max) {
    record.failure = record_too_large(end - record.offset, files_.record_bytes_max);
  } else {
    record.bytes =
        std::string_view(text_).substr(record.offset - text_offset_, end - record.offset);
  }
  too_large_ = false;
  starts_.pop_front();
  ++number_;
  return record;
}

RecordStream::Record RecordStream::fail(Failure failure) {
  Record record{.file = file_, .number = number_, .offset = text_offset_ + text_.size()};
  record.failure = std::move(failure);
  open_ = false;
  ++file_;
  skip_before_ = 0;
  return record;
}

void RecordStream::forget(std::uint64_t offset) {
  kept_from_ = std::max(kept_from_, std::min(offset, text_offset_ + text_.size()));
}

void RecordStream::drop_forgotten() {
  text_.erase(0, kept_from_ - text_offset_);
  text_offset_ = kept_from_;
}

Result<void> RecordStream::read_record() {
  while (starts_.size() < 2 && !end_) {
    const std::uint64_t unused = std::min(scanner_->undecided_from(), text_offset_ + text_.size());
    if (!starts_.empty()) {
      // Of a record without an end in sight, nothing is kept.
      const std::uint64_t kept = text_offset_ + text_.size() - starts_.front();
      if (too_large_ || kept > files_.record_bytes_max) {
        too_large_ = true;
        forget(unused);
      }
    } else if (preface_known_ || !files_.kind.has_preface) {
      forget(unused);
    } else if (text_.size() > kPrefaceMax) {
      return Failure{"there is more than a megabyte before the first record",
                     {},
                     "check the format of the file"};
    }
    if (auto done = decompress(); !done) return done;
  }
  return {};
}

Result<void> RecordStream::decompress() {
  const StreamedFiles::File& file = files_.files[file_];
  if (input_used_ == input_.size() && input_offset_ < file.handle->bytes()) {
    input_.resize(std::min(kPieceBytes, file.handle->bytes() - input_offset_));
    if (auto done = io_.read_at(*file.handle, input_offset_, input_); !done) return done;
    input_offset_ += input_.size();
    input_used_ = 0;
  }
  drop_forgotten();
  const std::size_t before = text_.size();
  const std::uint64_t fresh_from = text_offset_ + before;
  const std::span<const std::byte> rest = std::span(input_).subspan(input_used_);
  if (decompressor_ == nullptr) {
    text_.append(reinterpret_cast<const char*>(rest.data()), rest.size());
    input_used_ = input_.size();
  } else {
    text_.resize(before + kPieceBytes);
    auto done = decompressor_->run(rest, std::as_writable_bytes(std::span(text_).subspan(before)));
    text_.resize(before + (done ? done->written : 0));
    if (!done) return std::move(done.failure());
    input_used_ += done->read;
  }
  scan(std::string_view(text_).substr(before), fresh_from);
  const bool used_up = input_used_ == input_.size() && input_offset_ == file.handle->bytes();
  const bool all_written = decompressor_ == nullptr || text_.size() - before < kPieceBytes;
  if (!used_up || !all_written) return {};
  if (decompressor_ != nullptr)
    if (auto done = decompressor_->finish(); !done) return done;
  std::vector<std::uint64_t> starts;
  end_ = scanner_->finish(text_offset_ + text_.size(), starts);
  starts_.insert(starts_.end(), starts.begin(), starts.end());
  return {};
}

void RecordStream::scan(std::string_view fresh, std::uint64_t offset) {
  if (fresh.empty()) return;
  const std::uint64_t end = offset + fresh.size();
  if (scan_from_ >= end) return;
  const std::uint64_t from = std::max(scan_from_, offset);
  std::vector<std::uint64_t> starts;
  const std::uint64_t skipped = scanner_->scan(from, fresh.substr(from - offset), starts);
  scan_from_ = skipped > UINT64_MAX - end ? UINT64_MAX : end + skipped;
  if (!preface_known_ && !starts.empty()) {
    preface_known_ = true;
    if (files_.kind.has_preface)
      preface_ = text_.substr(0, std::min(starts.front() - text_offset_, kPrefaceMax));
  }
  starts_.insert(starts_.end(), starts.begin(), starts.end());
}

}  // namespace penstock
