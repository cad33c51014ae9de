// tested in src/source/fixed_records_test.cc and src/source/npy_files_test.cc
#include "source/fixed_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "base/cancelled.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "sample/rows.h"

namespace penstock {
namespace {

static_assert(std::endian::native == std::endian::little);

// A page more costs less than another read; beyond a megabyte a second read costs nothing.
constexpr std::uint64_t kGapBytesMax = 4096;
constexpr std::uint64_t kTogetherBytesMax = std::uint64_t{1} << 20;

template <typename Word>
void swap_words(std::byte* data, std::size_t bytes) {
  for (std::size_t at = 0; at + sizeof(Word) <= bytes; at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, data + at, sizeof word);
    if constexpr (sizeof(Word) == 2) word = __builtin_bswap16(word);
    if constexpr (sizeof(Word) == 4) word = __builtin_bswap32(word);
    if constexpr (sizeof(Word) == 8) word = __builtin_bswap64(word);
    std::memcpy(data + at, &word, sizeof word);
  }
}

/// Turns numbers as they are stored into those of this machine.
void convert(RowForm form, Dtype dtype, std::byte* data, std::size_t bytes) {
  if (form == RowForm::truth) {
    std::transform(data, data + bytes, data,
                   [](std::byte byte) { return byte == std::byte{0} ? byte : std::byte{1}; });
  } else if (form == RowForm::swapped) {
    if (dtype_size(dtype) == 2) swap_words<std::uint16_t>(data, bytes);
    if (dtype_size(dtype) == 4) swap_words<std::uint32_t>(data, bytes);
    if (dtype_size(dtype) == 8) swap_words<std::uint64_t>(data, bytes);
  }
}

/// The letters of 4 bytes as UTF-8; nothing if one is no letter of Unicode.
std::optional<std::string> utf8_of(std::span<const std::byte> row, bool swapped) {
  std::string text;
  std::size_t used = 0;  // of `text`, up to the last letter that is not zero
  for (std::size_t at = 0; at + 4 <= row.size(); at += 4) {
    std::uint32_t letter = 0;
    std::memcpy(&letter, row.data() + at, sizeof letter);
    if (swapped) letter = __builtin_bswap32(letter);
    const auto add = [&](std::uint32_t bits) { text += static_cast<char>(bits); };
    const auto rest = [&](unsigned shift) { add(0x80U | (letter >> shift & 0x3FU)); };
    if (letter > 0x10FFFF || (letter >= 0xD800 && letter < 0xE000)) return std::nullopt;
    if (letter < 0x80) {
      add(letter);
    } else if (letter < 0x800) {
      add(0xC0U | letter >> 6U);
      rest(0);
    } else if (letter < 0x10000) {
      add(0xE0U | letter >> 12U);
      rest(6);
      rest(0);
    } else {
      add(0xF0U | letter >> 18U);
      rest(12);
      rest(6);
      rest(0);
    }
    if (letter != 0) used = text.size();
  }
  text.resize(used);
  return text;
}

std::string_view without_zeros(std::span<const std::byte> row) {
  const std::string_view text(reinterpret_cast<const char*>(row.data()), row.size());
  return text.substr(0, text.find_last_not_of('\0') + 1);
}

/// Writes a value of bytes or string.
Result<void> write_value(const RowRun& run, std::span<const std::byte> row, Tensor& out) {
  if (run.form == RowForm::bytes || run.form == RowForm::padded_bytes) {
    const std::string_view all(reinterpret_cast<const char*>(row.data()), row.size());
    out = Tensor::bytes(run.form == RowForm::bytes ? all : without_zeros(row));
    return {};
  }
  const auto text = utf8_of(row, run.form == RowForm::utf32_swapped);
  if (!text)
    return Failure{"a string has a letter that is not one of Unicode", {}, "save the array again"};
  out = Tensor::bytes(*text, Dtype::string);
  return {};
}

class FixedRowSource final : public Source {
 public:
  explicit FixedRowSource(FixedRows rows) : rows_(std::move(rows)) {
    for (const FixedRows::File& file : rows_.files)
      for (const RowRun& run : file.runs) in_files_ = in_files_ || run.memory == nullptr;
  }
  [[nodiscard]] std::string word() const override { return rows_.word; }
  [[nodiscard]] std::uint64_t size() const override {
    return rows_.files.empty() ? 0 : rows_.files.back().end;
  }
  [[nodiscard]] const ElementSpec& spec() const override { return rows_.spec; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("{}({} x {}, {} file{})", rows_.word, size(), rows_.spec.text(),
                       rows_.files.size(), rows_.files.size() == 1 ? "" : "s");
  }
  [[nodiscard]] Json arguments() const override { return rows_.arguments; }
  void identify(Digest& digest) const override {
    for (const FixedRows::File& file : rows_.files) {
      digest.add(file.name);
      digest.add(file.handle->bytes());
      digest.add(file.end);
    }
  }
  void identify_values(Digest& digest) const override {
    for (const FixedRows::File& file : rows_.files)
      for (const RowRun& run : file.runs)
        digest.add(fmt::format("{} {} {}", run.memory ? 0 : run.offset, run.row_bytes,
                               static_cast<unsigned>(run.form)));
  }
  [[nodiscard]] std::string file_of(std::uint64_t number) const override {
    return number < size() ? file_with(number).handle->path() : "";
  }
  [[nodiscard]] std::uint64_t bytes_per_sample() const override {
    std::uint64_t bytes = 0;
    if (!rows_.files.empty())
      for (const RowRun& run : rows_.files.front().runs) bytes += run.memory ? 0 : run.row_bytes;
    return bytes;
  }

  [[nodiscard]] bool has_reads() const override { return in_files_; }
  [[nodiscard]] bool reads_in_decode() const override { return in_files_; }
  void reads(std::uint64_t number, std::vector<Read>& reads) const override {
    const FixedRows::File& file = file_with(number);
    for (const RowRun& run : file.runs) {
      if (run.memory || run.row_bytes == 0) continue;
      Read read{.object = file.handle->path(),
                .offset = offset_of(file, run, number),
                .length = run.row_bytes};
      read.file = file.handle;
      reads.push_back(std::move(read));
    }
  }

  Result<void> decode(std::span<const std::uint64_t> numbers, std::span<Bytes>,
                      const BlockView& out, const Context& context) const override {
    const Scratch::Frame frame(context.scratch);
    if (!in_files_ || !context.reader.by_row()) {
      const std::span order(context.scratch.array<std::size_t>(numbers.size()), numbers.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      if (!std::ranges::is_sorted(numbers))
        std::ranges::sort(order, {}, [&](std::size_t row) { return numbers[row]; });
      Result<void> done;
      for (std::size_t field = 0; field < out.columns.size() && done; ++field)
        done = together(field, numbers, order, out, context);
      if (done || done.failure().cancelled()) return done;
      // One of the rows failed. If they are computed one by one it is known which.
    }
    return one_by_one(numbers, out, context);
  }

 private:
  [[nodiscard]] const FixedRows::File& file_with(std::uint64_t number) const {
    return *std::ranges::upper_bound(rows_.files, number, {}, &FixedRows::File::end);
  }
  [[nodiscard]] std::uint64_t first_of(const FixedRows::File& file) const {
    return &file == rows_.files.data() ? 0 : (&file - 1)->end;
  }
  [[nodiscard]] std::uint64_t offset_of(const FixedRows::File& file, const RowRun& run,
                                        std::uint64_t number) const {
    return run.offset + (number - first_of(file)) * run.row_bytes;
  }

  Result<void> one_by_one(std::span<const std::uint64_t> numbers, const BlockView& out,
                          const Context& context) const {
    constexpr std::size_t kOne = 0;
    for (std::size_t row = 0; row < numbers.size(); ++row) {
      const Scratch::Frame frame(context.scratch);
      const BlockView part = cut_rows(out, row, 1, context.scratch);
      for (std::size_t field = 0; field < out.columns.size(); ++field) {
        auto done = together(field, numbers.subspan(row, 1), {&kOne, 1}, part, context);
        if (done) continue;
        done.failure().row = row;
        return done;
      }
    }
    return {};
  }

  /// Computes a field of the rows `order`, whose numbers ascend. What is close to each other in a
  /// file is read together.
  Result<void> together(std::size_t field, std::span<const std::uint64_t> numbers,
                        std::span<const std::size_t> order, const BlockView& out,
                        const Context& context) const {
    while (!order.empty()) {
      const std::uint64_t first = numbers[order.front()];
      if (!context.at_sample(out.identity.sample_id[order.front()])) return cancelled(0);
      const FixedRows::File& file = file_with(first);
      const RowRun& run = file.runs[field];
      // Rows that follow each other, in the file and in the block, are read to where they belong.
      const bool dense = out.columns[field].dense();
      std::size_t count = 1;
      while (dense && count < order.size() && numbers[order[count]] == first + count &&
             order[count] == order.front() + count && first + count < file.end)
        ++count;
      const bool follow = count > 1;
      while (!follow && !run.memory && count < order.size() &&
             fits(run, first, numbers[order[count - 1]], numbers[order[count]], file.end))
        ++count;
      const Part part{&file, &run, first};
      auto done = dense && (follow || count == 1)
                      ? directly(field, part, order.first(count), out, context)
                      : through_memory(field, part, numbers, order.first(count), out, context);
      if (!done) return done;
      order = order.subspan(count);
    }
    return {};
  }

  /// Whether the row `number` is read with the rows from `first` to `last`.
  static bool fits(const RowRun& run, std::uint64_t first, std::uint64_t last, std::uint64_t number,
                   std::uint64_t end) {
    if (number >= end) return false;
    if (number == last) return true;
    return (number - last - 1) * run.row_bytes <= kGapBytesMax &&
           (number + 1 - first) * run.row_bytes <= kTogetherBytesMax;
  }

  /// Rows of a file, from `first` on.
  struct Part {
    const FixedRows::File* file;
    const RowRun* run;
    std::uint64_t first;
  };

  Result<void> read(const Part& part, std::span<std::byte> to, const Context& context) const {
    const std::uint64_t offset = offset_of(*part.file, *part.run, part.first);
    if (to.empty()) return {};
    if (part.run->memory) {
      std::memcpy(to.data(), part.run->memory->data() + offset, to.size());
      return {};
    }
    return context.reader.read_at(*part.file->handle, offset, to, {this, part.first});
  }

  Result<void> directly(std::size_t field, const Part& part, std::span<const std::size_t> order,
                        const BlockView& out, const Context& context) const {
    const Column& column = out.columns[field];
    const std::span to(column.data + order.front() * column.row_bytes,
                       order.size() * column.row_bytes);
    if (auto done = read(part, to, context); !done) return done;
    convert(part.run->form, rows_.spec.fields[field].dtype, to.data(), to.size());
    return {};
  }

  Result<void> through_memory(std::size_t field, const Part& part,
                              std::span<const std::uint64_t> numbers,
                              std::span<const std::size_t> order, const BlockView& out,
                              const Context& context) const {
    const std::uint64_t row_bytes = part.run->row_bytes;
    const std::uint64_t rows = numbers[order.back()] + 1 - part.first;
    if (part.run->form == RowForm::bytes && order.size() == 1)
      return lend(part, out.columns[field].tensors[order.front()], context);
    const Scratch::Frame frame(context.scratch);
    const std::span from(context.scratch.allocate(rows * row_bytes), rows * row_bytes);
    if (auto done = read(part, from, context); !done) return done;
    const Column& column = out.columns[field];
    for (const std::size_t row : order) {
      const auto bytes = from.subspan((numbers[row] - part.first) * row_bytes, row_bytes);
      if (!column.dense()) {
        auto done = write_value(*part.run, bytes, column.tensors[row]);
        if (!done) return done;
      } else if (row_bytes > 0) {
        std::byte* const to = column.data + row * column.row_bytes;
        std::memcpy(to, bytes.data(), row_bytes);
        convert(part.run->form, rows_.spec.fields[field].dtype, to, row_bytes);
      }
    }
    return {};
  }

  /// A row of bytes that nothing copies.
  Result<void> lend(const Part& part, Tensor& out, const Context& context) const {
    const auto bytes = std::make_shared<Bytes>(part.run->row_bytes);
    if (auto done = read(part, *bytes, context); !done) return done;
    out = Tensor::view(Dtype::bytes, {}, *bytes, bytes);
    return {};
  }

  const FixedRows rows_;
  bool in_files_ = false;
};

}  // namespace

std::shared_ptr<const Source> make_fixed_rows(FixedRows rows) {
  return std::make_shared<const FixedRowSource>(std::move(rows));
}

}  // namespace penstock
