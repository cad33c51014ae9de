#include "record/jsonl.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "base/printable.h"
#include "base/report.h"
#include "penstock/error.h"
#include "record/json_decode.h"
#include "record/json_fast.h"
#include "record/json_fields.h"
#include "record/lines.h"

namespace penstock {
namespace {

class JsonLinesDecoder final : public RecordDecoder {
 public:
  explicit JsonLinesDecoder(JsonFields fields) : fields_(std::move(fields)) {}
  [[nodiscard]] const ElementSpec& spec() const override { return fields_.spec; }
  Result<void> decode(const RecordBytes& record, const BlockView& out, std::size_t row,
                      Scratch& scratch) const override {
    if (decode_json_fast(fields_, record.bytes, out, row, scratch)) return {};
    return decode_json(fields_, record.bytes, out, row, scratch);
  }
  void identify(Digest& digest) const override { fields_.identify(digest); }

 private:
  const JsonFields fields_;
};

/// The text of the object, without blank lines after it.
class RawDecoder final : public RecordDecoder {
 public:
  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] bool lends() const override { return true; }
  Result<void> decode(const RecordBytes& record, const BlockView& out, std::size_t row,
                      Scratch&) const override {
    const std::size_t last = record.bytes.find_last_not_of(" \t\r\n");
    return put_line(record.bytes.substr(0, last + 1), record.owner, out.columns[0], row);
  }
  void identify(Digest& digest) const override { digest.add("raw"); }

 private:
  const ElementSpec spec_ = ElementSpec::single(Dtype::string);
};

void check_options(const JsonLinesOptions& options) {
  const auto refuse = [](std::string why, const char* remedy) {
    throw ConfigError("from_jsonl: " + std::move(why), {}, remedy);
  };
  if (options.floats != Dtype::f32 && options.floats != Dtype::f64)
    refuse(fmt::format("floats cannot be {}", dtype_name(options.floats)), "f32 or f64");
  if (options.infer_records == 0 || options.infer_records > 1'000'000)
    refuse(fmt::format("infer_records cannot be {}", options.infer_records),
           "a number from 1 to 1,000,000");
  if (options.raw && (!options.fields.empty() || !options.nulls.empty()))
    refuse("raw lines have no fields and no nulls", "name fields, or read raw lines");
}

}  // namespace

RecordKind jsonl_kind(const JsonLinesOptions& options) {
  check_options(options);
  RecordKind kind;
  kind.word = "from_jsonl";
  kind.scanning = "json lines";
  kind.scanner = [] { return std::make_unique<LineScanner>(true); };
  if (options.raw) {
    kind.decoder = [](const FirstRecords&) { return std::make_shared<const RawDecoder>(); };
    return kind;
  }
  kind.infer_records = options.infer_records;
  kind.decoder = [options](const FirstRecords& first) {
    JsonFields fields = json_fields(options, first);
    if (!fields.left_out.empty())
      report(fmt::format("from_jsonl {}: left out: {}; name the fields to read them as JSON text",
                         printable(first.file), fields.left_out));
    return std::make_shared<const JsonLinesDecoder>(std::move(fields));
  };
  return kind;
}

}  // namespace penstock
