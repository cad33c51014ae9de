// tested in src/record/csv_test.cc
#include "record/csv_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/printable.h"
#include "base/utf8.h"
#include "penstock/error.h"
#include "record/csv_fields.h"
#include "record/csv_values.h"

namespace penstock {
namespace {

constexpr const char* kWord = "from_csv";

/// Some of the names, for errors.
std::string listed(const std::vector<CsvColumn>& columns) {
  constexpr std::size_t kListedMax = 20;
  std::string text;
  for (std::size_t i = 0; i < columns.size() && i < kListedMax; ++i)
    text += (i == 0 ? "" : ", ") + excerpt(columns[i].name);
  return columns.size() > kListedMax ? fmt::format("{}, ... ({} in all)", text, columns.size())
                                     : text;
}

CsvColumn& named_column(std::vector<CsvColumn>& columns, const std::string& name,
                        std::string_view option, const std::string& file) {
  const auto found = std::ranges::find(columns, name, &CsvColumn::name);
  if (found == columns.end())
    throw ConfigError(fmt::format("{}: {} names the column {}, which {} does not have", kWord,
                                  option, excerpt(name), printable(file)),
                      {}, fmt::format("its columns are {}", listed(columns)));
  return *found;
}

/// The names of all columns, with those of the options.
std::vector<std::string> column_names(const CsvOptions& options, const FirstRecords& first) {
  const CsvFormat format = csv_format(options);
  std::vector<std::string> names;
  if (options.header) {
    auto header = csv_header(format, first.file, first.preface);
    if (!header)
      throw ConfigError(
          fmt::format("{}: {} has no line with the names of columns", kWord, printable(first.file)),
          {}, "leave empty files out, or say that there is no header and name the columns");
    names = std::move(*header);
  } else if (!first.records.empty()) {
    const CsvRow row = cut_csv_record(format, first.records.front());
    if (row.damage != nullptr && options.names.empty())
      throw ConfigError(fmt::format("{}: the first record of {} is damaged: {}", kWord,
                                    printable(first.file), row.damage),
                        {}, "name the columns, or repair the file");
    names.resize(row.damage == nullptr ? row.values.size() : options.names.size());
  } else if (options.names.empty()) {
    throw ConfigError(
        fmt::format("{}: {} has no records, which would show how many columns there are", kWord,
                    printable(first.file)),
        {}, "name the columns");
  } else {
    names.resize(options.names.size());
  }
  if (!options.names.empty() && names.size() != options.names.size())
    throw ConfigError(fmt::format("{}: {} names for the {} columns of {}", kWord,
                                  options.names.size(), names.size(), printable(first.file)),
                      {}, "name all columns, and check the delimiter");
  if (!options.names.empty()) names = options.names;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i].empty()) names[i] = fmt::format("column{}", i);
  return names;
}

/// Marks what is read, and refuses names that no field can have.
void choose(std::vector<CsvColumn>& columns, const CsvOptions& options, const std::string& file) {
  for (const std::string& name : options.columns)
    named_column(columns, name, "columns", file).field = 0;
  for (CsvColumn& column : columns) {
    if (options.columns.empty()) column.field = 0;
    if (column.field == CsvColumn::kNotRead) continue;
    const auto same = [&](const CsvColumn& other) { return other.name == column.name; };
    const bool twice = std::ranges::count_if(columns, same) > 1;
    if (twice || !is_utf8(column.name))
      throw ConfigError(
          fmt::format("{}: {} {} {}", kWord, printable(file),
                      twice ? "has two columns called" : "has a column whose name is not UTF-8:",
                      excerpt(column.name)),
          {}, "give all columns other names, as in names={...}, or name the columns to read");
  }
}

/// The type of column `index`, from what the first records have there.
Dtype guess(const CsvColumn& column, std::size_t index, const std::vector<CsvRow>& rows,
            const CsvOptions& options, const std::string& file) {
  TypeGuess guess;
  for (const CsvRow& row : rows) {
    if (index >= row.values.size()) continue;  // that record will fail
    const std::string_view text = without_spaces(row.values[index]);
    if (!is_missing(options, text)) guess.add(text);
  }
  const auto null = options.nulls.find(column.name);
  if (null != options.nulls.end() && std::holds_alternative<double>(null->second)) {
    const double value = std::get<double>(null->second);
    if (std::trunc(value) != value || std::isinf(value)) guess.add_fraction();
  }
  auto dtype = guess.dtype(options.floats);
  if (!dtype && null != options.nulls.end())
    dtype = std::holds_alternative<std::string>(null->second) ? Dtype::string : options.floats;
  if (!dtype)
    throw ConfigError(
        fmt::format("{}: the column {} has no value in the first {} records of {}, so its type "
                    "cannot be inferred",
                    kWord, excerpt(column.name), rows.size(), printable(file)),
        {}, "give its type, or name the columns to read without it");
  return *dtype;
}

void set_types(std::vector<CsvColumn>& columns, const CsvOptions& options,
               const FirstRecords& first) {
  for (const auto& [name, dtype] : options.types)
    named_column(columns, name, "types", first.file).dtype = dtype;
  std::vector<CsvRow> rows;
  for (const std::string& record : first.records) {
    CsvRow row = cut_csv_record(csv_format(options), record);
    if (row.damage == nullptr && row.values.size() == columns.size())
      rows.push_back(std::move(row));
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    CsvColumn& column = columns[i];
    if (column.field == CsvColumn::kNotRead || options.types.contains(column.name)) continue;
    column.dtype = guess(column, i, rows, options, first.file);
  }
}

}  // namespace

bool is_missing(const CsvOptions& options, std::string_view text) {
  return std::ranges::any_of(options.missing, [text](const std::string& missing) {
    return missing.size() == text.size() && missing == text;
  });
}

std::optional<std::vector<std::string>> csv_header(const CsvFormat& format, const std::string& file,
                                                   std::string_view preface) {
  if (preface.starts_with("\xFF\xFE") || preface.starts_with("\xFE\xFF"))
    throw ConfigError(fmt::format("{}: {} is UTF-16", kWord, printable(file)), {},
                      "convert it to UTF-8, as with iconv");
  if (preface.starts_with(kByteOrderMark)) preface.remove_prefix(kByteOrderMark.size());
  while (!preface.empty()) {
    std::size_t skipped = 1;
    if (format.comment != '\0' && preface.front() == format.comment) {
      skipped = std::min(preface.find('\n'), preface.size() - 1) + 1;
    } else if (preface.front() != '\n' && preface.front() != '\r') {
      CsvRow row = cut_csv_record(format, preface);
      if (row.damage != nullptr)
        throw ConfigError(fmt::format("{}: the header of {} is damaged: {} (column {})", kWord,
                                      printable(file), row.damage, row.values.size() + 1));
      return std::move(row.values);
    }
    preface.remove_prefix(skipped);
  }
  return std::nullopt;
}

std::string csv_header_difference(const std::vector<std::string>& header,
                                  const std::vector<std::string>& first, const std::string& file) {
  if (header == first) return {};
  if (header.size() != first.size())
    return fmt::format("it has {} columns, {} has {}", header.size(), printable(file),
                       first.size());
  const auto differing = std::ranges::mismatch(header, first);
  return fmt::format("its column {} is {}, that of {} is {}", differing.in1 - header.begin() + 1,
                     excerpt(*differing.in1), printable(file), excerpt(*differing.in2));
}

std::vector<CsvColumn> csv_columns(const CsvOptions& options, const FirstRecords& first) {
  std::vector<CsvColumn> columns;
  for (std::string& name : column_names(options, first)) {
    columns.emplace_back();
    columns.back().name = std::move(name);
  }
  choose(columns, options, first.file);
  set_types(columns, options, first);
  for (const auto& [name, value] : options.nulls) {
    CsvColumn& column = named_column(columns, name, "nulls", first.file);
    if (column.field != CsvColumn::kNotRead)
      column.fill = null_fill(kWord, {name, column.dtype, {}}, value);
  }
  return columns;
}

}  // namespace penstock
