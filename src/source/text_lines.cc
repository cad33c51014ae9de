#include "source/text_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "penstock/error.h"
#include "source/glob.h"
#include "source/identify.h"
#include "source/mapped_file.h"

namespace penstock {
namespace {

/// Where each line of `text` begins, and the end of the last one.
std::vector<std::uint64_t> line_starts(std::string_view text) {
  std::vector<std::uint64_t> starts{0};
  while (starts.back() < text.size()) {
    const char* const from = text.data() + starts.back();
    const auto* const end =
        static_cast<const char*>(std::memchr(from, '\n', text.size() - starts.back()));
    starts.push_back(end == nullptr ? text.size()
                                    : static_cast<std::uint64_t>(end - text.data()) + 1);
  }
  return starts;
}

class TextLines final : public Source {
 public:
  explicit TextLines(std::vector<std::string> paths, const std::vector<std::string>& files)
      : paths_(std::move(paths)) {
    for (const std::string& file : files) {
      auto text = std::make_shared<const Tensor>(map_file(file, Dtype::u8));
      std::vector<std::uint64_t> starts = line_starts(text->text());
      size_ += starts.size() - 1;
      parts_.push_back({file, std::move(text), std::move(starts), size_});
    }
  }
  [[nodiscard]] std::string word() const override { return "from_text"; }
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] const ElementSpec& spec() const override { return spec_; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("from_text({} lines of {} file{})", size_, parts_.size(),
                       parts_.size() == 1 ? "" : "s");
  }
  [[nodiscard]] Json arguments() const override { return {{"paths", paths_}}; }
  void identify(Digest& digest) const override {
    for (const Part& part : parts_) {
      digest.add(fmt::format("{} bytes", part.text->text().size()));
      identify_bytes(part.text->text(), digest);
    }
  }
  [[nodiscard]] std::string file_of(std::uint64_t number) const override {
    return part_of(number).file;
  }

  Result<void> decode(std::span<const std::uint64_t> numbers, std::span<Bytes>,
                      const BlockView& out, const Context&) const override {
    for (std::size_t row = 0; row < numbers.size(); ++row) {
      const Part& part = part_of(numbers[row]);
      const std::uint64_t line = numbers[row] - (part.end - (part.starts.size() - 1));
      const std::string_view text = line_of(part, line);
      if (!is_utf8(text))
        return Failure{fmt::format("line {} of the file is not UTF-8", line + 1),
                       {},
                       "convert the file, or skip errors",
                       nullptr,
                       row};
      out.columns[0].tensors[row] =
          Tensor::view(Dtype::string, {}, std::as_bytes(std::span(text)), part.text);
    }
    return {};
  }

 private:
  struct Part {
    std::string file;
    std::shared_ptr<const Tensor> text;
    std::vector<std::uint64_t> starts;  // of its lines, and the end
    std::uint64_t end = 0;              // lines of this file and those before
  };

  [[nodiscard]] const Part& part_of(std::uint64_t number) const {
    return *std::ranges::upper_bound(parts_, number, {}, &Part::end);
  }
  static std::string_view line_of(const Part& part, std::uint64_t line) {
    std::string_view text =
        part.text->text().substr(part.starts[line], part.starts[line + 1] - part.starts[line]);
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (line == 0 && text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    if (text.ends_with("\r\n")) return text.substr(0, text.size() - 2);
    return text.ends_with('\n') ? text.substr(0, text.size() - 1) : text;
  }

  const std::vector<std::string> paths_;
  std::vector<Part> parts_;
  std::uint64_t size_ = 0;
  const ElementSpec spec_ = ElementSpec::single(Dtype::string);
};

}  // namespace

std::shared_ptr<const Source> make_text_lines(Io& io, const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    const FileTable found = list_matching(io, path, false);
    if (found.size() == 0)
      throw ConfigError(fmt::format("from_text: no file matches \"{}\"", printable(path)));
    for (std::uint64_t i = 0; i < found.size(); ++i) files.push_back(found.path(i));
  }
  if (files.empty()) throw ConfigError("from_text: no paths");
  return std::make_shared<TextLines>(paths, files);
}

}  // namespace penstock
