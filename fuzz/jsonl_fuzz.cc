// Any bytes are JSON lines, each of which is fields or a failure; what simdjson accepts, the plain
// parser reads in the same way.
#include <cstdlib>
#include <string>
#include <string_view>

#include "penstock/error.h"
#include "penstock/report_sink.h"
#include "record/json_decode.h"
#include "record/json_fast.h"
#include "record/json_fields.h"
#include "record/jsonl.h"
#include "record/records_for_tests.h"

namespace {

using penstock::Dtype;

void check(bool holds) {
  if (!holds) std::abort();
}

void compare(const penstock::JsonFields& fields, const std::string& record) {
  penstock::Scratch scratch;
  const penstock::ScratchBlock plain(fields.spec, 1, scratch);
  const penstock::ScratchBlock fast(fields.spec, 1, scratch);
  const bool accepted = decode_json_fast(fields, record, fast.view(), 0, scratch);
  const bool done = decode_json(fields, record, plain.view(), 0, scratch).ok();
  if (!accepted) return;
  check(done);
  const penstock::Sample one = penstock::read_row(plain.view(), 0);
  const penstock::Sample other = penstock::read_row(fast.view(), 0);
  for (std::size_t i = 0; i < fields.spec.fields.size(); ++i) {
    check(one.leaves()[i].shape() == other.leaves()[i].shape());
    check(one.leaves()[i].text() == other.leaves()[i].text());
  }
}

penstock::JsonLinesOptions options_of(unsigned flags) {
  penstock::JsonLinesOptions options;
  if ((flags & 1U) != 0) options.floats = Dtype::f64;
  if ((flags & 2U) != 0)
    options.fields = {{"a", Dtype::f64, {}},
                      {"b", Dtype::string, {}},
                      {"c", Dtype::i32, {penstock::kUnknown}},
                      {"d/e", Dtype::u64, {}},
                      {"d/f", Dtype::f16, {2, 2}},
                      {"g", Dtype::boolean, {}}};
  if ((flags & 6U) == 6U)
    options.nulls = {{"a", 0.5}, {"b", std::string("none")}, {"c", 3.0}, {"d/e", 4.0}, {"d/f", 5.0},
                     {"g", 1.0}};
  options.raw = (flags & 10U) == 8U;
  return options;
}

/// What is left out is reported.
class Silence {
 public:
  Silence() : before_(penstock::set_report_sink([](const std::string&) {})) {}
  ~Silence() { penstock::set_report_sink(before_); }

 private:
  const penstock::ReportSink before_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const Silence silence;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const penstock::JsonLinesOptions options = options_of(data[0]);
  const penstock::RecordKind kind = penstock::jsonl_kind(options);
  const auto scanned = scan_all(*kind.scanner(), text, text.size() + 1);
  check(scan_all(*kind.scanner(), text, 1 + data[0] / 16U) == scanned);
  (void)penstock::json_text_at(text, "b/c");
  try {
    const penstock::TextRecords records(kind, text);
    for (std::size_t i = 0; i < records.size(); ++i) (void)records.decode(i).ok();
    if (options.raw) return 0;
    const penstock::JsonFields fields = json_fields(options, first_records(kind, scanned));
    for (const std::string& record : scanned.records) compare(fields, record);
  } catch (const penstock::ConfigError&) {
  }
  return 0;
}
