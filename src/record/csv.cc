#include "record/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/printable.h"
#include "base/utf8.h"
#include "penstock/error.h"
#include "record/csv_columns.h"
#include "record/csv_fields.h"
#include "record/csv_values.h"

namespace penstock {
namespace {

/// Where the value of a field goes.
struct ValuePlace {
  const Column& column;
  std::size_t row;
  [[nodiscard]] std::byte* bytes() const { return column.data + row * column.row_bytes; }
};

template <typename T>
void put(const ValuePlace& to, T value) {
  std::memcpy(to.bytes(), &value, sizeof value);
}

class CsvDecoder final : public RecordDecoder {
 public:
  CsvDecoder(const CsvOptions& options, const FirstRecords& first)
      : options_(options), format_(csv_format(options)), columns_(csv_columns(options, first)) {
    if (options.header) {
      first_file_ = first.file;
      if (auto header = csv_header(format_, first.file, first.preface))
        header_ = std::move(*header);
    }
    std::vector<FieldSpec> fields;
    for (const CsvColumn& column : columns_)
      if (column.field != CsvColumn::kNotRead) fields.push_back({column.name, column.dtype, {}});
    spec_ = ElementSpec::dict(std::move(fields));
    for (CsvColumn& column : columns_) {
      if (column.field == CsvColumn::kNotRead) continue;
      if (const auto field = spec_.find(column.name)) column.field = *field;
      lends_ = lends_ || is_variable(column.dtype);
    }
    // Otherwise a number could be the text of a missing value.
    short_numbers_ = std::ranges::none_of(options.missing, [](const std::string& text) {
      return !text.empty() &&
             std::string_view("0123456789+-.").find(text.front()) != std::string_view::npos;
    });
  }

  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] bool lends() const override { return lends_; }

  Result<void> decode(const RecordBytes& record, const BlockView& out, std::size_t row,
                      Scratch& scratch) const override {
    const Scratch::Frame frame(scratch);
    const char* at = record.bytes.data();
    const char* const end = at + record.bytes.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const CsvColumn& column = columns_[i];
      const char* after = nullptr;
      if (column.field != CsvColumn::kNotRead) {
        const ValuePlace to{out.columns[column.field], row};
        after = read_short(column, at, end, to);
        if (after == nullptr) {
          const CsvField field = cut_csv_field(format_, at, end);
          if (field.damage != nullptr) return damaged(column, field);
          auto done = read_field(column, field, record, to, scratch);
          if (!done) return done;
          after = field.after;
        }
      } else {
        after = skip_csv_field(format_, at, end);
        if (after == nullptr) return damaged(column, cut_csv_field(format_, at, end));
      }
      const bool line_end = after == end || *after == '\n';
      if (line_end != (i + 1 == columns_.size())) return wrong_count(record.bytes);
      at = after + 1;
    }
    return {};
  }

  [[nodiscard]] Result<void> accept(std::string_view preface) const override {
    if (!options_.header) return {};
    try {
      const auto header = csv_header(format_, "the file", preface);
      if (!header) return {};  // there are no records either
      std::string difference = csv_header_difference(*header, header_, first_file_);
      if (difference.empty()) return {};
      return Failure{"the header is another one: " + difference,
                     {},
                     "read files with different columns as datasets of their own"};
    } catch (const ConfigError& error) {
      return Failure{error.what()};
    }
  }

  void identify(Digest& digest) const override {
    digest.add(fmt::format("{}{}{}", options_.delimiter, options_.quote, options_.comment));
    for (const CsvColumn& column : columns_) {
      if (column.field == CsvColumn::kNotRead) continue;
      digest.add(column.name);
      digest.add(dtype_name(column.dtype));
      column.fill.identify(digest);
    }
    for (const std::string& text : options_.missing) digest.add(text);
  }

 private:
  /// A number of the most frequent types without quotes or spaces. Returns the end of the field;
  /// null if there is something else.
  const char* read_short(const CsvColumn& column, const char* at, const char* end,
                         const ValuePlace& to) const {
    if (!short_numbers_) return nullptr;
    if (column.dtype == Dtype::i64) {
      std::int64_t value = 0;
      at = read_short_integer(at, end, value);
      if (at != nullptr) put(to, value);
    } else if (column.dtype == Dtype::f32 || column.dtype == Dtype::f64) {
      double value = 0;
      at = read_short_decimal(at, end, value);
      if (at == nullptr) return nullptr;
      if (column.dtype == Dtype::f32) {
        put(to, static_cast<float>(value));
      } else {
        put(to, value);
      }
    } else {
      return nullptr;
    }
    return at == nullptr ? nullptr : csv_field_end(format_, at, end);
  }

  Result<void> read_field(const CsvColumn& column, const CsvField& field, const RecordBytes& record,
                          const ValuePlace& to, Scratch& scratch) const {
    const std::string_view value = field.value(scratch);
    const std::string_view text = without_spaces(value);
    if (is_variable(column.dtype)) {
      const bool null = column.fill.filled && !field.quoted && is_missing(options_, text);
      return null ? read_text(column, column.fill.text, nullptr, to)
                  : read_text(column, value, field.doubled ? nullptr : record.owner, to);
    }
    if (is_missing(options_, text)) {
      if (!column.fill.filled)
        return Failure{fmt::format("column {}: the value is missing{}", excerpt(column.name),
                                   text.empty() ? "" : fmt::format(" ({})", excerpt(text))),
                       {},
                       "name what missing values become, as in nulls={...}, or skip errors"};
      std::memcpy(to.bytes(), column.fill.number.data(), column.fill.number.size());
      return {};
    }
    const TextValue result = parse_text_value(text, column.dtype, to.bytes());
    if (result == TextValue::good) return {};
    return Failure{
        fmt::format("column {}: {} is {} {}", excerpt(column.name), excerpt(text),
                    result == TextValue::no_value ? "not of type" : "out of the range of",
                    dtype_name(column.dtype)),
        {},
        "give the column another type, as in types={...}, add the text to `missing`, or skip "
        "errors"};
  }

  static Result<void> read_text(const CsvColumn& column, std::string_view text,
                                const std::shared_ptr<const void>& owner, const ValuePlace& to) {
    if (column.dtype == Dtype::string) {
      const std::size_t good = utf8_prefix(text);
      if (good < text.size())
        return Failure{fmt::format("column {}: {} is not UTF-8 from its byte {} on",
                                   excerpt(column.name), excerpt(text), good),
                       {},
                       "convert the file, or give the column the type bytes"};
    }
    to.column.tensors[to.row] =
        owner == nullptr ? Tensor::bytes(text, column.dtype)
                         : Tensor::view(column.dtype, {}, std::as_bytes(std::span(text)), owner);
    return {};
  }

  static Failure damaged(const CsvColumn& column, const CsvField& field) {
    return {
        fmt::format("column {}: {}: {}", excerpt(column.name), field.damage, excerpt(field.text)),
        {},
        "a quote inside a quoted field is written twice; files without quoted fields are read "
        "with no quote"};
  }

  [[nodiscard]] Failure wrong_count(std::string_view record) const {
    const CsvRow row = cut_csv_record(format_, record);
    return {fmt::format("the record has {}{} fields, there are {} columns: {}",
                        row.damage == nullptr ? "" : "at least ", row.values.size(),
                        columns_.size(), excerpt(record.substr(0, record.find('\n')))),
            {},
            "a delimiter inside a field needs quotes around it; repair the file, or skip errors"};
  }

  const CsvOptions options_;
  const CsvFormat format_;
  std::vector<CsvColumn> columns_;
  std::string first_file_;
  std::vector<std::string> header_;  // of the first file
  ElementSpec spec_;
  bool lends_ = false;
  bool short_numbers_ = true;
};

void check_options(const CsvOptions& options) {
  const auto refuse = [](std::string why, const char* remedy) {
    throw ConfigError("from_csv: " + std::move(why), {}, remedy);
  };
  const auto in_numbers = [](char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '.' || byte == '-' || byte == '+';
  };
  const std::array marks{options.delimiter, options.quote, options.comment};
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const char* const name = std::array{"delimiter", "quote", "comment"}[i];
    const char mark = marks[i];
    if (mark == '\0' && i > 0) continue;
    if (mark == '\0' || mark == '\n' || mark == '\r' || in_numbers(mark) ||
        (static_cast<unsigned char>(mark) & 0x80U) != 0)
      refuse(fmt::format("the {} cannot be {}", name, excerpt({&mark, 1})),
             "it is one ASCII character that is no letter, digit, '.', '+', '-' or line end");
    for (std::size_t k = 0; k < i; ++k)
      if (marks[k] == mark)
        refuse(fmt::format("the {} and the {} are the same",
                           std::array{"delimiter", "quote", "comment"}[k], name),
               "give them different characters");
  }
  if (options.floats != Dtype::f32 && options.floats != Dtype::f64)
    refuse(fmt::format("floats cannot be {}", dtype_name(options.floats)), "f32 or f64");
  if (options.infer_records == 0 || options.infer_records > 1'000'000)
    refuse(fmt::format("infer_records cannot be {}", options.infer_records),
           "a number from 1 to 1,000,000");
}

}  // namespace

RecordKind csv_kind(const CsvOptions& options) {
  check_options(options);
  RecordKind kind;
  kind.word = "from_csv";
  const auto mark = [](char byte) { return byte == '\0' ? "none" : excerpt({&byte, 1}); };
  kind.scanning =
      fmt::format("csv delimiter {} quote {} comment {} header {}", mark(options.delimiter),
                  mark(options.quote), mark(options.comment), options.header ? "yes" : "no");
  kind.scanner = [format = csv_format(options), header = options.header] {
    return std::make_unique<CsvScanner>(format, header);
  };
  kind.has_preface = options.header;
  kind.infer_records = options.infer_records;
  kind.decoder = [options](const FirstRecords& first) {
    return std::make_shared<const CsvDecoder>(options, first);
  };
  return kind;
}

}  // namespace penstock
