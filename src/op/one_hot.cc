// tested in src/op/mixing_test.cc
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/json.h"
#include "op/op.h"
#include "penstock/error.h"
#include "penstock/image.h"
#include "sample/rows.h"

namespace penstock {
namespace {

class OneHot final : public Op {
 public:
  OneHot(std::int64_t classes, std::string field) : classes_(classes), field_(std::move(field)) {
    if (classes < 1 || classes > (1 << 24))
      throw ConfigError(fmt::format("one_hot: classes must be positive, got {}", classes));
  }
  [[nodiscard]] std::string word() const override { return "one_hot"; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("one_hot({}, {})", classes_, field_);
  }
  [[nodiscard]] Json arguments() const override {
    return {{"classes", classes_}, {"field", field_}};
  }
  [[nodiscard]] ElementSpec output(const ElementSpec& input) const override {
    if (!input.known) return input;
    ElementSpec spec = input;
    FieldSpec& field = spec.fields[index_in(input)];
    const bool number = field.dtype >= Dtype::u8 && field.dtype <= Dtype::i64;
    if (!number || !field.shape.empty())
      throw ConfigError(fmt::format("one_hot: field \"{}\" is {}", field_, field.text()), {},
                        "it needs one whole number per sample: the number of its class");
    field.dtype = Dtype::f32;
    field.shape = {classes_};
    return spec;
  }
  Result<void> run(const BlockView& in, const BlockView& out, const OpContext&) const override {
    const std::size_t index = index_in(*in.spec);
    copy_other_columns(in, out, index);
    auto* values = reinterpret_cast<float*>(out.columns[index].data);
    std::fill_n(values, in.rows * static_cast<std::size_t>(classes_), 0.0F);
    for (std::size_t row = 0; row < in.rows; ++row, values += classes_) {
      const std::int64_t label = label_at(in, index, row);
      if (label < 0 || label >= classes_)
        return Failure{fmt::format("one_hot: label {} is not one of {} classes", label, classes_),
                       {},
                       "classes are numbered from 0",
                       nullptr,
                       row};
      values[label] = 1;
    }
    return {};
  }

 private:
  [[nodiscard]] std::size_t index_in(const ElementSpec& spec) const {
    return field_index("one_hot", field_, spec);
  }
  static std::int64_t label_at(const BlockView& in, std::size_t index, std::size_t row) {
    const Column& column = in.columns[index];
    const std::byte* const data = column.data + row * column.row_bytes;
    const bool is_signed = in.spec->fields[index].dtype >= Dtype::i8;
    std::int64_t value = 0;
    std::memcpy(&value, data, column.row_bytes);
    const auto unused = static_cast<unsigned>(8 * (sizeof value - column.row_bytes));
    return is_signed
               ? static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << unused) >> unused
               : value;
  }

  std::int64_t classes_;
  std::string field_;
};

}  // namespace

std::shared_ptr<const Op> make_one_hot(const Json& arguments) {
  try {
    return std::make_shared<OneHot>(whole_number<std::int64_t>(arguments.at("classes")),
                                    arguments.at("field").get<std::string>());
  } catch (const Json::exception& error) {
    throw ConfigError(fmt::format("one_hot: {}", error.what()));
  }
}

OpCall image::one_hot(std::int64_t classes, std::string field) {
  return OpCall(make_one_hot({{"classes", classes}, {"field", std::move(field)}}));
}

}  // namespace penstock
