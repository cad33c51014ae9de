// tested in src/feed/text_formats_test.cc
#include "penstock/text_files.h"
#include "record/lines.h"
#include "verb/catalogue.h"
#include "verb/record_dataset.h"

namespace penstock {

Dataset from_text(const std::vector<std::string>& paths, const RecordFileOptions& options) {
  return record_dataset(lines_kind(), {paths, options});
}

Dataset parse_from_text(const Parsed& parsed) {
  const RecordArguments arguments = parse_record_arguments(parsed);
  return from_text(arguments.paths, arguments.options);
}

}  // namespace penstock
