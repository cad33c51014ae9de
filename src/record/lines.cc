#include "record/lines.h"

#include <fmt/format.h>

#include <cstring>

#include "base/utf8.h"

namespace penstock {
namespace {

bool is_space(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

class LineDecoder final : public RecordDecoder {
 public:
  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] bool lends() const override { return true; }
  Result<void> decode(const RecordBytes& record, const BlockView& out, std::size_t row,
                      Scratch&) const override {
    return put_line(without_line_end(record.bytes), record.owner, out.columns[0], row);
  }
  [[nodiscard]] std::string place(std::uint64_t number, std::uint64_t offset) const override {
    return fmt::format("line {} (byte {})", number + 1, offset);
  }
  void identify(Digest& digest) const override { digest.add("lines"); }

 private:
  const ElementSpec spec_ = ElementSpec::single(Dtype::string);
};

}  // namespace

void LineScanner::scan_text(std::uint64_t offset, std::string_view text,
                            std::vector<std::uint64_t>& starts) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* at = begin;
  while (at < end) {
    if (!in_line_) {
      if (skip_blank_) {
        while (at < end && is_space(*at)) ++at;
        if (at == end) return;
      }
      starts.push_back(offset + static_cast<std::uint64_t>(at - begin));
      in_line_ = true;
    }
    const auto* const line_end =
        static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
    if (line_end == nullptr) return;
    in_line_ = false;
    at = line_end + 1;
  }
}

ScanEnd LineScanner::finish_text(std::uint64_t file_bytes, std::vector<std::uint64_t>&) {
  return {file_bytes};
}

std::string_view without_line_end(std::string_view line) {
  if (line.ends_with('\n')) {
    line.remove_suffix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
  }
  return line;
}

Result<void> put_line(std::string_view line, const std::shared_ptr<const void>& owner,
                      const Column& column, std::size_t row) {
  const std::size_t good = utf8_prefix(line);
  if (good < line.size())
    return Failure{fmt::format("the line is not UTF-8 from its byte {} on", good),
                   {},
                   "convert the file, as with iconv, or skip errors"};
  column.tensors[row] =
      owner == nullptr ? Tensor::bytes(line, Dtype::string)
                       : Tensor::view(Dtype::string, {}, std::as_bytes(std::span(line)), owner);
  return {};
}

RecordKind lines_kind() {
  RecordKind kind;
  kind.word = "from_text";
  kind.scanning = "lines";
  kind.scanner = [] { return std::make_unique<LineScanner>(false); };
  kind.decoder = [](const FirstRecords&) { return std::make_shared<const LineDecoder>(); };
  return kind;
}

}  // namespace penstock
