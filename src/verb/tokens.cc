// Datasets of tokens: rows of different lengths, and windows.
// tested in src/source/ragged_rows_test.cc
#include <fmt/format.h>

#include "penstock/io.h"
#include "source/ragged_rows.h"
#include "verb/catalogue.h"
#include "verb/source.h"

namespace penstock {

Dataset Dataset::from_ragged(Tensor values, Tensor offsets, const SourceOptions& options) {
  return from_source(make_ragged(std::move(values), std::move(offsets), options.name), options);
}

Dataset Dataset::from_windows(Tensor values, std::int64_t length, std::int64_t stride,
                              const SourceOptions& options) {
  return from_source(make_windows(std::move(values), length, stride, options.name), options);
}

Dataset Dataset::tokens(const std::string& pattern, Dtype dtype, std::int64_t length,
                        std::int64_t stride) {
  return from_source(make_tokens(Io::real(), pattern, dtype, length, stride), {});
}

Dataset Dataset::from_megatron(const std::string& prefix) {
  return from_source(make_megatron(prefix), {});
}

Dataset parse_tokens(const Parsed& parsed) {
  const std::string name = parsed.text("dtype");
  for (auto dtype = Dtype::boolean; dtype <= Dtype::f64;
       dtype = static_cast<Dtype>(static_cast<unsigned>(dtype) + 1))
    if (dtype_name(dtype) == name)
      return Dataset::tokens(parsed.text("pattern"), dtype, parsed.number("length"),
                             parsed.number("stride"));
  throw ConfigError(fmt::format("tokens: no dtype \"{}\"", name));
}

Dataset parse_from_megatron(const Parsed& parsed) {
  return Dataset::from_megatron(parsed.text("prefix"));
}

}  // namespace penstock
