// Datasets of fixed-length records and of arrays in files.
// tested in src/source/fixed_records_test.cc and src/source/npy_files_test.cc
#include "penstock/fixed_records.h"

#include <fmt/format.h>

#include "penstock/io.h"
#include "penstock/npy_files.h"
#include "source/fixed_records.h"
#include "source/npy_files.h"
#include "verb/catalogue.h"
#include "verb/source.h"

namespace penstock {
namespace {

Dtype dtype_named(const std::string& name) {
  for (auto dtype = Dtype::boolean; dtype <= Dtype::f64;
       dtype = static_cast<Dtype>(static_cast<unsigned>(dtype) + 1))
    if (dtype_name(dtype) == name) return dtype;
  throw ConfigError(fmt::format("from_records: no dtype \"{}\"", name));
}

}  // namespace

Dataset from_records(const std::vector<std::string>& paths, std::uint64_t record_bytes,
                     const FixedRecordOptions& options) {
  return from_source(make_fixed_records(Io::real(), paths, record_bytes, options), {});
}

Dataset from_npy(const std::vector<std::string>& paths, const NpyFileOptions& options) {
  return from_source(make_npy_files(Io::real(), paths, options), {});
}

Dataset parse_from_records(const Parsed& parsed) {
  FixedRecordOptions options{.header_bytes = parsed.count("header_bytes"),
                             .footer_bytes = parsed.count("footer_bytes"),
                             .partial = parsed.text("partial")};
  if (parsed.arguments.contains("dtype")) {
    options.dtype = dtype_named(parsed.text("dtype"));
    options.shape = parsed.at("shape").get<Shape>();
  }
  return from_records(parsed.at("paths").get<std::vector<std::string>>(),
                      parsed.count("record_bytes"), options);
}

Dataset parse_from_npy(const Parsed& parsed) {
  NpyFileOptions options{.fields = parsed.at("fields").get<std::vector<std::string>>()};
  if (parsed.arguments.contains("bytes_max")) options.bytes_max = parsed.count("bytes_max");
  return from_npy(parsed.at("paths").get<std::vector<std::string>>(), options);
}

}  // namespace penstock
