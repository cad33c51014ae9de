// tested in src/feed/text_formats_test.cc
#include "penstock/csv.h"

#include <fmt/format.h>

#include "penstock/error.h"
#include "record/csv.h"
#include "verb/catalogue.h"
#include "verb/json_values.h"
#include "verb/record_dataset.h"

namespace penstock {
namespace {

std::string text_of(char byte) {
  return byte == '\0' ? "" : std::string(1, byte);
}

char mark_of(const Parsed& parsed, const char* key) {
  const std::string text = parsed.text(key);
  if (text.size() > 1) throw ConfigError(fmt::format("from_csv: {} is one character", key));
  return text.empty() ? '\0' : text[0];
}

Json json_of(const CsvOptions& options) {
  Json types = Json::object();
  for (const auto& [column, dtype] : options.types) types[column] = std::string(dtype_name(dtype));
  return {{"delimiter", text_of(options.delimiter)},
          {"quote", text_of(options.quote)},
          {"comment", text_of(options.comment)},
          {"header", options.header},
          {"names", options.names},
          {"columns", options.columns},
          {"types", std::move(types)},
          {"floats", std::string(dtype_name(options.floats))},
          {"nulls", json_of_nulls(options.nulls)},
          {"missing", options.missing},
          {"infer_records", options.infer_records}};
}

}  // namespace

Dataset from_csv(const std::vector<std::string>& paths, const CsvOptions& options) {
  return record_dataset(csv_kind(options), {paths, options.files, json_of(options)});
}

Dataset parse_from_csv(const Parsed& parsed) {
  RecordArguments arguments = parse_record_arguments(parsed);
  CsvOptions options;
  options.delimiter = mark_of(parsed, "delimiter");
  options.quote = mark_of(parsed, "quote");
  options.comment = mark_of(parsed, "comment");
  options.header = parsed.flag("header");
  options.names = parsed.at("names").get<std::vector<std::string>>();
  options.columns = parsed.at("columns").get<std::vector<std::string>>();
  for (const auto& [column, name] : parsed.at("types").items())
    options.types[column] = parse_dtype_name(name.get<std::string>());
  options.floats = parse_dtype_name(parsed.text("floats"));
  options.nulls = parse_nulls(parsed.at("nulls"));
  options.missing = parsed.at("missing").get<std::vector<std::string>>();
  options.infer_records = parsed.count("infer_records");
  options.files = std::move(arguments.options);
  return from_csv(arguments.paths, options);
}

}  // namespace penstock
