// tested in src/feed/tar_test.cc
#include "penstock/tar.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "penstock/error.h"
#include "record/tar.h"
#include "verb/catalogue.h"
#include "verb/record_dataset.h"

namespace penstock {
namespace {

Dtype dtype_named(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(Dtype::string); ++i)
    if (dtype_name(static_cast<Dtype>(i)) == name) return static_cast<Dtype>(i);
  throw ConfigError(fmt::format("from_tar: no dtype \"{}\"", printable(name)));
}

}  // namespace

Dataset from_tar(const std::vector<std::string>& paths, const TarOptions& options) {
  RecordArguments arguments{paths, options.files};
  Json dtypes = Json::array();
  for (const auto& [field, dtype] : options.dtypes) dtypes.push_back({field, dtype_name(dtype)});
  arguments.others = {
      {"fields", options.fields}, {"dtypes", std::move(dtypes)}, {"key", options.key}};
  return record_dataset(tar_kind(options), arguments);
}

Dataset parse_from_tar(const Parsed& parsed) {
  const RecordArguments arguments = parse_record_arguments(parsed);
  TarOptions options;
  options.fields = parsed.at("fields").get<std::vector<std::pair<std::string, std::string>>>();
  for (const auto& [field, dtype] :
       parsed.at("dtypes").get<std::vector<std::pair<std::string, std::string>>>())
    options.dtypes.emplace_back(field, dtype_named(dtype));
  options.key = parsed.flag("key");
  options.files = arguments.options;
  return from_tar(arguments.paths, options);
}

}  // namespace penstock
