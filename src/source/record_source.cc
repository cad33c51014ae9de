// tested in src/feed/records_test.cc
#include "source/record_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/cancelled.h"
#include "base/json.h"
#include "base/printable.h"

namespace penstock {
namespace {

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class RecordSource final : public Source {
 public:
  explicit RecordSource(RecordSourceParts parts) : parts_(std::move(parts)) {
    Digest digest;
    files().identify(digest);
    digest_ = digest.text();
  }

  [[nodiscard]] std::string word() const override { return parts_.word; }
  [[nodiscard]] std::uint64_t size() const override { return files().size(); }
  [[nodiscard]] const ElementSpec& spec() const override { return parts_.decoder->spec(); }
  [[nodiscard]] std::string describe() const override {
    const std::size_t count = files().files().size();
    return fmt::format("{}({} records of {} file{})", parts_.word, size(), count,
                       count == 1 ? "" : "s");
  }
  [[nodiscard]] std::string notes() const override { return parts_.decoder->notes(); }
  void identify(Digest& digest) const override { digest.add(digest_); }
  void identify_values(Digest& digest) const override { parts_.decoder->identify(digest); }
  [[nodiscard]] Json arguments() const override { return *parts_.arguments; }
  [[nodiscard]] std::string file_of(std::uint64_t number) const override {
    return number < size() ? files().at(number).file->handle->path() : "";
  }
  [[nodiscard]] std::uint64_t bytes_per_sample() const override {
    return size() == 0 ? 0 : files().bytes() / size();
  }

  [[nodiscard]] bool has_reads() const override { return true; }
  [[nodiscard]] bool reads_in_decode() const override { return true; }
  void reads(std::uint64_t number, std::vector<Read>& reads) const override {
    const RecordFiles::Place place = files().at(number);
    if (place.span.bytes > parts_.record_bytes_max) return;
    Read read{.object = place.file->handle->path(),
              .offset = place.span.offset,
              .length = place.span.bytes};
    read.file = place.file->handle;
    reads.push_back(std::move(read));
  }

  Result<void> decode(std::span<const std::uint64_t> numbers, std::span<Bytes>,
                      const BlockView& out, const Context& context) const override {
    for (std::size_t first = 0; first < numbers.size();) {
      const Scratch::Frame frame(context.scratch);
      auto* const places = context.scratch.array<RecordFiles::Place>(numbers.size() - first);
      const Group group = group_from(numbers.subspan(first), places);
      if (auto done = decode_group({places, group.rows}, group.bytes, numbers, first, out, context);
          !done)
        return done;
      first += group.rows;
    }
    return {};
  }

 private:
  /// Rows that share one buffer.
  struct Group {
    std::size_t rows = 0;
    std::uint64_t bytes = 0;
  };

  [[nodiscard]] const RecordFiles& files() const { return *parts_.files; }

  [[nodiscard]] Group group_from(std::span<const std::uint64_t> numbers,
                                 RecordFiles::Place* places) const {
    // A field that is a view keeps the buffer of its whole group.
    constexpr std::uint64_t kLentBytes = std::uint64_t{64} << 10;
    constexpr std::uint64_t kBytes = std::uint64_t{1} << 20;
    const std::uint64_t most = parts_.decoder->lends() ? kLentBytes : kBytes;
    Group group;
    for (const std::uint64_t number : numbers) {
      RecordFiles::Place& place = places[group.rows] = files().at(number);
      const bool too_large = place.span.bytes > parts_.record_bytes_max;
      const std::uint64_t bytes = too_large ? 0 : place.span.bytes;
      if (group.rows > 0 && group.bytes + bytes > most) break;
      group.bytes += bytes;
      ++group.rows;
    }
    return group;
  }

  Result<void> decode_group(std::span<const RecordFiles::Place> places, std::uint64_t bytes,
                            std::span<const std::uint64_t> numbers, std::size_t first,
                            const BlockView& out, const Context& context) const {
    std::shared_ptr<Bytes> owner;
    std::byte* at = nullptr;
    if (parts_.decoder->lends()) {
      owner = std::make_shared<Bytes>(bytes);
      at = owner->data();
    } else {
      at = context.scratch.allocate(bytes);
    }
    for (std::size_t row = 0; row < places.size();) {
      if (!context.at_sample(out.identity.sample_id[first + row])) return cancelled(first + row);
      const std::size_t run = adjacent(places.subspan(row), context.reader.by_row());
      auto failure =
          decode_run(places.subspan(row, run), at, owner, numbers, first + row, out, context);
      if (!failure) return failure;
      for (const RecordFiles::Place& place : places.subspan(row, run))
        if (place.span.bytes <= parts_.record_bytes_max) at += place.span.bytes;
      row += run;
    }
    return {};
  }

  /// How many of the first records follow each other in one file, so that one read is enough.
  [[nodiscard]] std::size_t adjacent(std::span<const RecordFiles::Place> places,
                                     bool by_row) const {
    std::size_t run = 1;
    if (by_row || places[0].span.bytes > parts_.record_bytes_max) return run;
    for (; run < places.size(); ++run) {
      const RecordFiles::Place& before = places[run - 1];
      const RecordFiles::Place& place = places[run];
      if (place.file != before.file || place.record != before.record + 1 ||
          place.span.bytes > parts_.record_bytes_max)
        break;
    }
    return run;
  }

  Result<void> decode_run(std::span<const RecordFiles::Place> places, std::byte* at,
                          const std::shared_ptr<Bytes>& owner,
                          std::span<const std::uint64_t> numbers, std::size_t row,
                          const BlockView& out, const Context& context) const {
    const RecordSpan& start = places.front().span;
    if (start.bytes > parts_.record_bytes_max)
      return failed(record_too_large(start.bytes, parts_.record_bytes_max), places.front(), row);
    const RecordSpan& last = places.back().span;
    const std::span<std::byte> all(at, last.offset + last.bytes - start.offset);
    auto read = context.reader.read_at(*places.front().file->handle, start.offset, all,
                                       {this, numbers[row]});
    if (!read && places.size() > 1) {
      // One by one, so that those before the one that cannot be read are complete.
      for (std::size_t i = 0; i < places.size(); ++i) {
        if (auto done = decode_run(places.subspan(i, 1), at, owner, numbers, row + i, out, context);
            !done)
          return done;
        at += places[i].span.bytes;
      }
      return {};
    }
    if (!read) return failed(std::move(read.failure()), places.front(), row);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const RecordSpan& span = places[i].span;
      const Scratch::Frame frame(context.scratch);
      const RecordBytes record{text_of(all.subspan(span.offset - start.offset, span.bytes)), owner};
      if (auto done = parts_.decoder->decode(record, out, row + i, context.scratch); !done)
        return failed(std::move(done.failure()), places[i], row + i);
    }
    return {};
  }

  [[nodiscard]] Failure failed(Failure failure, const RecordFiles::Place& place,
                               std::size_t row) const {
    failure = in_record(std::move(failure), place.file->handle->path(),
                        parts_.decoder->place(place.record, place.span.offset));
    failure.row = row;
    return failure;
  }

  const RecordSourceParts parts_;
  std::string digest_;
};

}  // namespace

Failure in_record(Failure failure, const std::string& file, const std::string& place) {
  failure.message = fmt::format("{}: {}", place, failure.message);
  if (failure.where.file.empty()) failure.where.file = file;
  return failure;
}

Failure record_too_large(std::uint64_t bytes, std::uint64_t bytes_max) {
  return {fmt::format("the record has {} bytes, more than the limit of {}", bytes, bytes_max),
          {},
          "raise record_bytes_max if that is right"};
}

std::shared_ptr<const Source> make_record_source(RecordSourceParts parts) {
  return std::make_shared<const RecordSource>(std::move(parts));
}

}  // namespace penstock
