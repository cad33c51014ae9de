// tested in src/feed/stored_test.cc
#include "source/stored_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "sample/rows.h"
#include "store/disk_rows.h"

namespace penstock {
namespace {

class StoredSource final : public Source {
 public:
  StoredSource(std::shared_ptr<const StoredRows> rows, std::string word)
      : rows_(std::move(rows)), word_(std::move(word)) {}
  [[nodiscard]] std::string word() const override { return word_; }
  [[nodiscard]] std::uint64_t size() const override { return rows_->rows; }
  [[nodiscard]] const ElementSpec& spec() const override { return rows_->spec; }
  [[nodiscard]] std::string describe() const override {
    return rows_->folder.empty() ? fmt::format("{}()", word_)
                                 : fmt::format("{}(\"{}\")", word_, printable(rows_->folder));
  }
  void identify(Digest& digest) const override {
    digest.add(rows_->digests.order);
    digest.add(rows_->rows);
  }
  void identify_values(Digest& digest) const override { digest.add(rows_->digests.values); }
  [[nodiscard]] Json arguments() const override { return {{"folder", rows_->folder}}; }
  [[nodiscard]] std::string file_of(std::uint64_t number) const override {
    auto* const disk = dynamic_cast<DiskRows*>(rows_->store.get());
    return disk == nullptr ? rows_->folder : disk->file_of(number);
  }

  Result<void> decode(std::span<const std::uint64_t> numbers, std::span<Bytes>,
                      const BlockView& out, const Context& context) const override {
    // The ids are those of this source, not those that the rows were stored with.
    const Scratch::Frame frame(context.scratch);
    BlockView rows = out;
    rows.identity.sample_id = context.scratch.array<std::uint64_t>(numbers.size());
    rows.identity.occurrence = nullptr;
    if ((out.samples == nullptr) == rows_->spec.known) return get(numbers, rows);
    const ScratchBlock stored(rows_->spec, numbers.size(), context.scratch, rows.identity);
    if (auto done = get(numbers, stored.view()); !done) return done;
    for (std::size_t row = 0; row < numbers.size(); ++row)
      if (const auto wrong = write_row(out, row, read_row(stored.view(), row)))
        return Failure{*wrong, {}, {}, nullptr, row};
    return {};
  }

 private:
  Result<void> get(std::span<const std::uint64_t> numbers, const BlockView& out) const {
    // Rows before a failed one must be complete.
    const auto missing = rows_->store->get(numbers, out);
    if (missing.empty()) return {};
    const std::uint64_t number = numbers[missing.front()];
    Failure failure{fmt::format("row {} of {} is damaged or missing", number, describe())};
    failure.row = missing.front();
    failure.where.file = rows_->folder;
    failure.remedy = rows_->remedy;
    if (rows_->store->has(number)) {  // damaged rows are removed
      failure.message = fmt::format("row {} of {} could not be read now", number, describe());
      failure.remedy = "see whether the storage answers";
      failure.kind = Failure::Kind::transient;
    }
    return failure;
  }

  const std::shared_ptr<const StoredRows> rows_;
  const std::string word_;
};

}  // namespace

std::shared_ptr<const Source> make_stored(std::shared_ptr<const StoredRows> rows,
                                          const std::string& word) {
  return std::make_shared<const StoredSource>(std::move(rows), word);
}

std::shared_ptr<const StoredRows> open_saved(Io& io, const std::string& folder) {
  const std::string title = fmt::format("load(\"{}\")", printable(folder));
  const auto header = find_header(io, folder, title, false);
  if (!header)
    throw ConfigError(fmt::format("{}: there is no saved dataset: dataset.json is missing", title),
                      {}, "name a folder that save(), or a complete cache(), has written");
  if (!header->complete || !header->rows)
    throw ConfigError(
        fmt::format("{}: the dataset is incomplete: its writer has not finished", title), {},
        "call save() again, which goes on where it can");
  const auto disk = DiskRows::shared(
      {.title = title, .folder = folder, .header = *header, .write = false, .io = &io});
  if (disk->rows() < *header->rows) {
    std::uint64_t first = 0;
    while (disk->has(first)) ++first;
    throw ConfigError(
        fmt::format("{}: {} of its {} rows are missing, row {} is the first: row files were "
                    "removed or truncated",
                    title, *header->rows - disk->rows(), *header->rows, first),
        {}, "save the dataset again");
  }
  auto rows = std::make_shared<StoredRows>();
  *rows = {disk,
           *header->rows,
           header->data.spec,
           header->data.digests,
           folder,
           "save the dataset again, or skip failed samples"};
  return rows;
}

}  // namespace penstock
