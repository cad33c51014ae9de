#include "source/chunked_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/cancelled.h"
#include "base/guarded.h"
#include "base/memory.h"
#include "base/printable.h"
#include "penstock/error.h"
#include "sample/rows.h"
#include "source/arrow_table.h"
#include "source/row_parts.h"
#include "source/table_cache.h"

namespace penstock {
namespace {

std::uint64_t default_bytes_max() {
  constexpr std::uint64_t kLeast = std::uint64_t{256} << 20;
  constexpr std::uint64_t kMost = std::uint64_t{4} << 30;
  return std::clamp(memory_available() / 8, kLeast, kMost);
}

std::string megabytes(std::uint64_t bytes) {
  return fmt::format("{} MB", (bytes + 999'999) / 1'000'000);
}

/// Bytes of the fields of fixed size in one row.
std::uint64_t fixed_bytes(const ElementSpec& spec) {
  std::uint64_t bytes = 0;
  for (const FieldSpec& field : spec.fields)
    if (is_dense(field)) bytes += row_bytes(field);
  return bytes;
}

/// Some rows of a block that are in one chunk.
struct RowsOfChunk {
  std::uint64_t chunk = 0;
  ArrowRowsWanted wanted;
};

class ChunkedRows final : public Source {
 public:
  ChunkedRows(const ArrowSchema& schema, ChunkedTable table, const TableChunkOptions& options)
      : layout_(
            std::make_shared<const ArrowLayout>(options.table.word, schema, options.table.nulls)),
        table_(std::move(table)),
        options_(options),
        cache_(options.chunk_bytes_max > 0 ? options.chunk_bytes_max : default_bytes_max(),
               [this](std::uint64_t chunk, const TableCache::Wanted& wanted) {
                 return load(chunk, wanted);
               }) {
    if (!table_.load) throw ConfigError(fmt::format("{}: there is no function to load", word()));
    constexpr std::uint64_t kRowsMax = std::uint64_t{1} << 62;
    const std::uint64_t row_bytes = fixed_bytes(spec());
    for (const TableChunk& chunk : table_.chunks) {
      if (chunk.file >= table_.files.size())
        throw ConfigError(fmt::format("{}: a chunk is of file {}, and there are {}", word(),
                                      chunk.file, table_.files.size()));
      if (chunk.rows > kRowsMax - parts_.rows())
        throw ConfigError(fmt::format("{}: {} has more than 2^62 rows", word(),
                                      printable(table_.files[chunk.file])));
      parts_.add(chunk.rows);
      bytes_ += std::max(chunk.bytes, chunk.rows * row_bytes);
      rows_max_ = std::max(rows_max_, chunk.rows);
    }
    // A view would keep the memory of its chunk when the cache has dropped it.
    lending_ = fits() ? ArrowTable::Lending::views : ArrowTable::Lending::copies;
  }

  [[nodiscard]] std::string word() const override { return layout_->word(); }
  [[nodiscard]] std::uint64_t size() const override { return parts_.rows(); }
  [[nodiscard]] const ElementSpec& spec() const override { return layout_->spec(); }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("{}({} in {}, {} x {})", word(), chunks_text(),
                       counted(table_.files.size(), "file"), size(), spec().text());
  }
  [[nodiscard]] std::string name() const override { return options_.table.name; }
  void identify(Digest& digest) const override {
    digest.add(size());
    digest.add(spec().text());
    digest.add(options_.identity);
  }
  void identify_values(Digest& digest) const override { layout_->identify_values(digest); }
  [[nodiscard]] std::string file_of(std::uint64_t number) const override {
    return table_.files[table_.chunks[parts_.find(number).part].file];
  }
  [[nodiscard]] std::optional<std::string> random_order_warning() const override {
    if (fits()) return std::nullopt;
    return fmt::format(
        "{}: a whole shuffle needs rows of all chunks at once, but {} (about {}) do not fit into "
        "the {} that are kept in memory: a row costs a {} of {} rows; shuffle(blocks=...) loads "
        "each once",
        word(), chunks_text(), megabytes(bytes_), megabytes(cache_.bytes_max()),
        options_.chunk_word, rows_max_);
  }

  Result<void> decode(std::span<const std::uint64_t> numbers, std::span<Bytes>,
                      const BlockView& out, const Context& context) const override {
    const Scratch::Frame frame(context.scratch);
    const TableCache::User user(cache_);
    std::span<RowsOfChunk> left = by_chunk(numbers, context.scratch);
    Result<void> bad;
    std::size_t good = numbers.size();  // rows before this one are not known to be bad
    using Effort = TableCache::Effort;
    // What is there first: loading may drop it. Then what no other thread loads.
    for (const Effort effort : {Effort::look, Effort::load, Effort::wait}) {
      std::size_t later = 0;
      for (const RowsOfChunk& part : left) {
        if (context.cancelled()) return cancelled(0);
        const ArrowRowsWanted wanted = before(part.wanted, good);
        if (wanted.rows.empty()) continue;
        auto table = cache_.get(part.chunk, effort, [&] { return !context.cancelled(); });
        if (table && *table == nullptr) {
          left[later++] = part;
          continue;
        }
        Result<void> done = table ? (*table)->write(wanted, out, lending_, context.scratch)
                                  : Result<void>(std::move(table.failure()));
        if (done) continue;
        if (done.failure().cancelled()) return cancelled(0);
        if (!table) done.failure().row = wanted.places.front();
        good = done.failure().row;
        bad = std::move(done);
      }
      left = left.first(later);
    }
    return bad;
  }

 private:
  static std::string counted(std::uint64_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  }
  [[nodiscard]] std::string chunks_text() const {
    return counted(table_.chunks.size(), options_.chunk_word);
  }
  [[nodiscard]] bool fits() const { return bytes_ <= cache_.bytes_max(); }

  /// The wanted rows that come before row `end` of the block.
  static ArrowRowsWanted before(const ArrowRowsWanted& wanted, std::size_t end) {
    const auto count = static_cast<std::size_t>(std::ranges::lower_bound(wanted.places, end) -
                                                wanted.places.begin());
    return {wanted.rows.first(count), wanted.places.first(count)};
  }

  [[nodiscard]] std::span<RowsOfChunk> by_chunk(std::span<const std::uint64_t> numbers,
                                                Scratch& scratch) const {
    struct Wanted {
      std::uint64_t chunk;
      std::uint64_t row;
      std::uint32_t place;
    };
    const std::size_t count = numbers.size();
    auto* const sorted = scratch.array<Wanted>(count);
    bool ascending = true;
    for (std::size_t i = 0; i < count; ++i) {
      const RowParts::Place place = parts_.find(numbers[i]);
      sorted[i] = {place.part, place.row, static_cast<std::uint32_t>(i)};
      ascending = ascending && (i == 0 || sorted[i - 1].chunk <= place.part);
    }
    if (!ascending)
      std::sort(sorted, sorted + count, [](const Wanted& left, const Wanted& right) {
        return left.chunk != right.chunk ? left.chunk < right.chunk : left.place < right.place;
      });
    auto* const rows = scratch.array<std::uint64_t>(count);
    auto* const places = scratch.array<std::uint32_t>(count);
    auto* const parts = scratch.array<RowsOfChunk>(count);
    std::size_t found = 0;
    for (std::size_t i = 0, first = 0; i < count; ++i) {
      rows[i] = sorted[i].row;
      places[i] = sorted[i].place;
      if (i + 1 < count && sorted[i + 1].chunk == sorted[i].chunk) continue;
      parts[found++] = {sorted[i].chunk,
                        {{rows + first, i + 1 - first}, {places + first, i + 1 - first}}};
      first = i + 1;
    }
    return {parts, found};
  }

  /// For the cache: all that goes wrong is a failure that names the chunk.
  Result<TableCache::TablePtr> load(std::uint64_t number, const TableCache::Wanted& wanted) const {
    const TableChunk& chunk = table_.chunks[number];
    TableCache::TablePtr table;
    std::string wrong;
    auto done = guarded(
        [&] {
          try {
            table = read(number, wanted);
            if (table != nullptr && table->rows() != chunk.rows)
              wrong = fmt::format("it has {} rows, not {}", table->rows(), chunk.rows);
          } catch (const ConfigError& error) {
            wrong = error.message();
          } catch (const std::exception& error) {
            wrong = error.what();
            throw;
          }
        },
        [] { return std::size_t{0}; });
    if (done && wrong.empty() && table == nullptr) return cancelled(0);
    if (done && wrong.empty()) return table;
    Failure failure = done ? Failure{} : std::move(done.failure());
    failure.message = fmt::format("{} {}: {}", options_.chunk_word, chunk.number,
                                  wrong.empty() ? failure.message : printable(wrong));
    return failure;
  }

  /// Null if it is not wanted any more.
  [[nodiscard]] TableCache::TablePtr read(std::uint64_t number,
                                          const TableCache::Wanted& wanted) const {
    Released<ArrowArrayStream> stream;
    table_.load(number, stream);
    if (stream.release == nullptr) throw ConfigError("it was not loaded");
    const ArrowLayout found(word(), *read_schema(stream, word()), {});
    if (const auto difference = layout_->difference(found))
      throw ConfigError(fmt::format("the columns have changed: {}", *difference));
    auto batches = read_batches(stream, word(), wanted);
    if (!wanted()) return nullptr;
    return std::make_shared<const ArrowTable>(layout_, std::move(batches));
  }

  const std::shared_ptr<const ArrowLayout> layout_;
  const ChunkedTable table_;
  const TableChunkOptions options_;
  RowParts parts_;
  std::uint64_t bytes_ = 0;     // of all chunks, about
  std::uint64_t rows_max_ = 0;  // of a chunk
  ArrowTable::Lending lending_ = ArrowTable::Lending::views;
  mutable TableCache cache_;
};

}  // namespace

std::shared_ptr<const Source> make_chunked_rows(ArrowSchema& schema, ChunkedTable table,
                                                const TableChunkOptions& options) {
  const Released<ArrowSchema> own(schema);
  return std::make_shared<const ChunkedRows>(own, std::move(table), options);
}

}  // namespace penstock
