// tested in src/source/text_lines_test.cc
#include "penstock/io.h"
#include "penstock/text_files.h"
#include "source/text_lines.h"
#include "verb/catalogue.h"
#include "verb/source.h"

namespace penstock {

Dataset from_text(const std::vector<std::string>& paths) {
  return from_source(make_text_lines(Io::real(), paths), {});
}

Dataset parse_from_text(const Parsed& parsed) {
  return from_text(parsed.at("paths").get<std::vector<std::string>>());
}

}  // namespace penstock
