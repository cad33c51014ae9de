// Any bytes are records of CSV files, each of which is values or a failure; how a file comes in
// pieces does not matter. Tables that were written are read as they were.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/error.h"
#include "record/csv.h"
#include "record/csv_fields.h"
#include "record/records_for_tests.h"

namespace {

using penstock::CsvFormat;
using penstock::CsvOptions;

void check(bool holds) {
  if (!holds) std::abort();
}

/// Every value is readable.
void touch(const penstock::Sample& sample) {
  std::size_t sum = 0;
  for (const penstock::Tensor& leaf : sample.leaves())
    for (const std::byte byte : leaf.raw()) sum += std::to_integer<unsigned>(byte);
  volatile std::size_t sink = sum;
  (void)sink;
}

CsvOptions options_of(unsigned flags) {
  CsvOptions options;
  options.delimiter = (flags & 1U) != 0 ? ';' : ',';
  options.quote = (flags & 2U) != 0 ? '\0' : '"';
  options.comment = (flags & 4U) != 0 ? '#' : '\0';
  options.header = (flags & 8U) == 0;
  options.infer_records = (flags & 16U) != 0 ? 1 : 1000;
  if ((flags & 32U) != 0) options.missing = {"0", "x"};
  return options;
}

void read_anything(const CsvOptions& options, std::string_view text, std::size_t piece_bytes) {
  const penstock::RecordKind kind = penstock::csv_kind(options);
  const CsvFormat format{options.delimiter, options.quote, options.comment};
  const auto scanned = scan_all(*kind.scanner(), text, text.size() + 1);
  check(scan_all(*kind.scanner(), text, piece_bytes) == scanned);
  std::string all = scanned.preface;
  for (const std::string& record : scanned.records) {
    all += record;
    const auto row = cut_csv_record(format, record);
    // What follows the last field is empty lines and comments.
    if (row.damage == nullptr) {
      penstock::CsvScanner rest(format, false);
      check(scan_all(rest, record, record.size() + 1).records.size() == 1 ||
            record.starts_with(penstock::kByteOrderMark));
    }
  }
  check(all == text);
  try {
    const penstock::TextRecords records(kind, text);
    for (std::size_t i = 0; i < records.size(); ++i)
      if (const auto sample = records.decode(i)) touch(*sample);
    (void)records.decoder().accept(text).ok();
  } catch (const penstock::ConfigError&) {
  }
}

std::string written(std::string_view value, const CsvFormat& format, bool quoted) {
  quoted = quoted || value.find_first_of("\"\r\n#,;\xEF") != std::string_view::npos;
  if (!quoted) return std::string(value);
  std::string text(1, format.quote);
  for (const char byte : value) text.append(byte == format.quote ? 2 : 1, byte);
  return text + format.quote;
}

/// The bytes as the values of a table, with 0x1F between them.
void write_and_read(CsvOptions options, std::string_view data, std::size_t columns) {
  options.quote = '"';
  options.missing = {};
  options.header = true;
  for (std::size_t i = 0; i < columns; ++i) {
    options.names.push_back(fmt::format("{}", i));
    options.types[options.names.back()] = penstock::Dtype::bytes;
  }
  const CsvFormat format{options.delimiter, options.quote, options.comment};
  std::vector<std::string> values;
  while (!data.empty()) {
    const std::size_t end = std::min(data.find('\x1F'), data.size());
    values.emplace_back(data.substr(0, end));
    data.remove_prefix(std::min(end + 1, data.size()));
  }
  values.resize((values.size() + columns - 1) / columns * columns);
  std::string text;
  for (std::size_t i = 0; i < columns; ++i)
    text += fmt::format("{}h{}", i == 0 ? "" : std::string(1, format.delimiter), i);
  text += "\n";
  for (std::size_t i = 0; i < values.size(); ++i) {
    // A line with one empty value would be an empty line.
    text += written(values[i], format, i % 3 == 0 || columns == 1);
    text += (i + 1) % columns != 0 ? std::string(1, format.delimiter) : i % 2 == 0 ? "\r\n" : "\n";
  }
  const penstock::TextRecords records(penstock::csv_kind(options), text);
  check(records.size() * columns == values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    check(records[i / columns][options.names[i % columns]].text() == values[i]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const CsvOptions options = options_of(data[0]);
  read_anything(options, text, 1 + data[1] % 16U);
  write_and_read(options, text, 1 + data[1] / 64U);
  return 0;
}
