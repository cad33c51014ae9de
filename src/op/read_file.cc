#include <fmt/format.h>

#include <utility>

#include "base/json.h"
#include "op/each_row.h"
#include "op/op.h"
#include "penstock/error.h"
#include "source/reader.h"
#include "trace/activity.h"

namespace penstock {
namespace {

class ReadFile final : public Op {
 public:
  ReadFile(std::string path, std::uint64_t bytes_max)
      : path_(std::move(path)), bytes_max_(bytes_max) {}
  [[nodiscard]] std::string word() const override { return "read_file"; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("read_file({})", path_);
  }
  [[nodiscard]] Json arguments() const override {
    Json arguments = {{"path", path_}};
    if (bytes_max_ != kFileBytesMax) arguments["bytes_max"] = bytes_max_;
    return arguments;
  }

  [[nodiscard]] ElementSpec output(const ElementSpec& input) const override {
    if (!input.known) return input;
    ElementSpec spec = input;
    FieldSpec& field = spec.fields[index_in(input)];
    if (!is_variable(field.dtype))
      throw ConfigError(
          fmt::format("read_file: field \"{}\" is {}, not a path", path_, field.text()), {},
          "a path is a string, as from list_files");
    field.dtype = Dtype::bytes;
    return spec;
  }

  Result<void> run(const BlockView& in, const BlockView& out,
                   const OpContext& context) const override {
    const std::size_t index = index_in(*in.spec);
    copy_other_columns(in, out, index);
    return each_row(in, context, [&](std::size_t row) {
      return read_row(in.columns[index].tensors[row], out.columns[index].tensors[row], context);
    });
  }

 private:
  [[nodiscard]] std::size_t index_in(const ElementSpec& spec) const {
    return field_index("read_file", path_, spec);
  }

  Result<void> read_row(const Tensor& path, Tensor& out, const Context& context) const {
    std::string name(path.text());
    if (name.find('\0') != std::string::npos)
      return Failure{"read_file: the path contains a zero byte"};
    auto bytes = context.reader.get_file(name, bytes_max_);
    if (!bytes) {
      bytes.failure().where.file = std::move(name);
      return std::move(bytes.failure());
    }
    if ((*bytes).empty()) {
      out = Tensor::bytes("");
      return {};
    }
    const auto owner = std::make_shared<const Bytes>(std::move(*bytes));
    out = Tensor::view(Dtype::bytes, {}, *owner, owner);
    return {};
  }

  std::string path_;
  std::uint64_t bytes_max_;
};

}  // namespace

std::shared_ptr<const Op> make_read_file(const Json& arguments) {
  if (!arguments.contains("path") || !arguments.at("path").is_string())
    throw ConfigError(
        "read_file: it needs the name of a field, or \"\" for elements without names");
  return std::make_shared<ReadFile>(
      arguments.at("path").get<std::string>(),
      whole_number<std::uint64_t>(arguments.value("bytes_max", Json(kFileBytesMax))));
}

OpCall read_file(std::string path, std::uint64_t bytes_max) {
  return OpCall(make_read_file({{"path", std::move(path)}, {"bytes_max", bytes_max}}));
}

}  // namespace penstock
