// tested in src/feed/text_formats_test.cc
#include "penstock/json_lines.h"

#include "record/jsonl.h"
#include "verb/catalogue.h"
#include "verb/json_values.h"
#include "verb/record_dataset.h"

namespace penstock {

Dataset from_jsonl(const std::vector<std::string>& paths, const JsonLinesOptions& options) {
  return record_dataset(jsonl_kind(options), {paths,
                                              options.files,
                                              {{"fields", json_of_fields(options.fields)},
                                               {"floats", std::string(dtype_name(options.floats))},
                                               {"nulls", json_of_nulls(options.nulls)},
                                               {"raw", options.raw},
                                               {"infer_records", options.infer_records}}});
}

Dataset parse_from_jsonl(const Parsed& parsed) {
  RecordArguments arguments = parse_record_arguments(parsed);
  JsonLinesOptions options;
  options.fields = parse_fields(parsed.at("fields"));
  options.floats = parse_dtype_name(parsed.text("floats"));
  options.nulls = parse_nulls(parsed.at("nulls"));
  options.raw = parsed.flag("raw");
  options.infer_records = parsed.count("infer_records");
  options.files = std::move(arguments.options);
  return from_jsonl(arguments.paths, options);
}

}  // namespace penstock
