#include "source/arrow_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "penstock/error.h"
#include "source/arrow_table.h"
#include "source/row_parts.h"

namespace penstock {
namespace {

class ArrowRows final : public Source {
 public:
  ArrowRows(const ArrowSchema& schema, std::shared_ptr<const ArrowBatches> batches,
            const ArrowOptions& options)
      : name_(options.name),
        layout_(std::make_shared<const ArrowLayout>(options.word, schema, options.nulls)),
        table_(layout_, std::move(batches)),
        files_(options.files) {
    for (const ArrowFile& file : files_) file_rows_.add(file.rows);
    if (!files_.empty() && file_rows_.rows() != size())
      throw ConfigError(fmt::format("{}: the files have {} rows and the table has {}", word(),
                                    file_rows_.rows(), size()));
  }

  [[nodiscard]] std::string word() const override { return layout_->word(); }
  [[nodiscard]] std::uint64_t size() const override { return table_.rows(); }
  [[nodiscard]] const ElementSpec& spec() const override { return layout_->spec(); }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("{}({} x {})", word(), size(), spec().text());
  }
  [[nodiscard]] std::string name() const override { return name_; }
  void identify(Digest& digest) const override {
    digest.add(describe());
    // Some rows: enough to recognize other data without reading all of it.
    constexpr std::uint64_t kRows = 16;
    for (std::uint64_t i = 0; i < kRows && i < size(); ++i) {
      const std::uint64_t number = size() * i / std::min(kRows, size());
      for (std::size_t leaf = 0; leaf < layout_->leaves().size(); ++leaf) {
        auto tensor = table_.value_of(leaf, number);
        digest.add(tensor ? tensor->text().substr(0, 64) : std::string_view("null"));
      }
    }
  }
  void identify_values(Digest& digest) const override { layout_->identify_values(digest); }
  [[nodiscard]] std::string file_of(std::uint64_t number) const override {
    return files_.empty() ? std::string() : files_[file_rows_.find(number).part].path;
  }

  Result<void> decode(std::span<const std::uint64_t> numbers, std::span<Bytes>,
                      const BlockView& out, const Context& context) const override {
    const Scratch::Frame frame(context.scratch);
    auto* const places = context.scratch.array<std::uint32_t>(numbers.size());
    std::iota(places, places + numbers.size(), 0U);
    return table_.write({numbers, {places, numbers.size()}}, out, ArrowTable::Lending::views,
                        context.scratch);
  }

 private:
  const std::string name_;
  const std::shared_ptr<const ArrowLayout> layout_;
  const ArrowTable table_;
  const std::vector<ArrowFile> files_;
  RowParts file_rows_;
};

}  // namespace

std::shared_ptr<const Source> make_arrow_rows(ArrowArrayStream& given,
                                              const ArrowOptions& options) {
  Released<ArrowArrayStream> stream(given);
  const auto schema = read_schema(stream, options.word);
  return std::make_shared<const ArrowRows>(*schema, read_batches(stream, options.word), options);
}

std::shared_ptr<const Source> make_arrow_rows(ArrowSchema& schema, ArrowArray& batch,
                                              const ArrowOptions& options) {
  const Released<ArrowSchema> own(schema);
  auto batches = std::make_shared<ArrowBatches>();
  batches->emplace_back(batch);
  return std::make_shared<const ArrowRows>(own, std::move(batches), options);
}

}  // namespace penstock
