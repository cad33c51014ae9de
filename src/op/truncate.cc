#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/json.h"
#include "op/op.h"
#include "penstock/error.h"
#include "penstock/op.h"

namespace penstock {
namespace {

class Truncate final : public Op {
 public:
  Truncate(std::int64_t length, std::string path, Keep keep)
      : length_(length), path_(std::move(path)), keep_(keep) {
    if (length < 0)
      throw ConfigError(fmt::format("truncate: length must not be negative, got {}", length));
  }
  [[nodiscard]] std::string word() const override { return "truncate"; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("truncate({}{}{}{})", length_, path_.empty() ? "" : ", ", path_,
                       keep_ == Keep::last ? ", keep=last" : "");
  }
  [[nodiscard]] Json arguments() const override {
    return {{"length", length_}, {"path", path_}, {"last", keep_ == Keep::last}};
  }

  [[nodiscard]] ElementSpec output(const ElementSpec& input) const override {
    if (!input.known) return input;
    ElementSpec spec = input;
    FieldSpec& field = spec.fields[index_in(input)];
    if (is_variable(field.dtype) || field.shape.empty())
      throw ConfigError(fmt::format("truncate: field \"{}\" is {}", path_, field.text()), {},
                        "name a field with one dimension or more");
    // The rows of a field of unknown length may all be shorter.
    if (field.shape.front() != kUnknown)
      field.shape.front() = std::min(field.shape.front(), length_);
    return spec;
  }

  Result<void> run(const BlockView& in, const BlockView& out, const OpContext&) const override {
    const std::size_t index = index_in(*in.spec);
    copy_other_columns(in, out, index);
    const Column& from = in.columns[index];
    const Column& to = out.columns[index];
    for (std::size_t row = 0; row < in.rows; ++row) {
      if (!from.dense()) {
        to.tensors[row] = cut(from.tensors[row]);
        continue;
      }
      const std::size_t skipped = keep_ == Keep::last ? from.row_bytes - to.row_bytes : 0;
      if (to.row_bytes > 0)
        std::memcpy(to.data + row * to.row_bytes, from.data + row * from.row_bytes + skipped,
                    to.row_bytes);
    }
    return {};
  }

 private:
  [[nodiscard]] std::size_t index_in(const ElementSpec& spec) const {
    return field_index("truncate", path_, spec);
  }
  [[nodiscard]] Tensor cut(const Tensor& row) const {
    const std::int64_t size = row.shape().front();
    if (size <= length_) return row.kept();
    return row.rows(keep_ == Keep::last ? size - length_ : 0, length_).kept();
  }

  const std::int64_t length_;
  const std::string path_;
  const Keep keep_;
};

}  // namespace

std::shared_ptr<const Op> make_truncate(const Json& arguments) {
  return std::make_shared<Truncate>(
      arguments.contains("length") ? whole_number<std::int64_t>(arguments.at("length")) : -1,
      arguments.value("path", std::string()),
      arguments.value("last", false) ? Keep::last : Keep::first);
}

OpCall truncate(std::int64_t length, std::string path, Keep keep) {
  return OpCall(make_truncate({{"length", length}, {"path", path}, {"last", keep == Keep::last}}));
}

}  // namespace penstock
