#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/json.h"
#include "base/printable.h"
#include "codec/image_write.h"
#include "op/each_row.h"
#include "op/op.h"
#include "penstock/error.h"
#include "penstock/image.h"
#include "sample/rows.h"

namespace penstock {
namespace {

class EncodeImage final : public Op {
 public:
  EncodeImage(std::string format, int quality, std::string field)
      : format_(std::move(format)), quality_(quality), field_(std::move(field)) {
    if (format_ != "jpeg" && format_ != "png")
      throw ConfigError(
          fmt::format("image::encode: the format \"{}\" is not known", printable(format_)), {},
          "use jpeg or png");
    if (quality_ < 1 || quality_ > 100)
      throw ConfigError(fmt::format("image::encode: quality must be 1 to 100, got {}", quality_));
  }
  [[nodiscard]] std::string word() const override { return "encode_image"; }
  [[nodiscard]] std::string describe() const override {
    return format_ == "jpeg" ? fmt::format("encode(jpeg, quality={})", quality_) : "encode(png)";
  }
  [[nodiscard]] Json arguments() const override {
    return {{"format", format_}, {"quality", quality_}, {"field", field_}};
  }

  [[nodiscard]] ElementSpec output(const ElementSpec& input) const override {
    if (!input.known) return input;
    ElementSpec spec = input;
    FieldSpec& field = spec.fields[index_in(input)];
    const bool image = field.dtype == Dtype::u8 && field.shape.size() == 3;
    const std::int64_t channels = image ? field.shape[2] : 0;
    const bool fits = channels == kUnknown || channels == 1 || channels == 3 ||
                      (format_ == "png" && (channels == 2 || channels == 4));
    if (!image || !fits)
      throw ConfigError(
          fmt::format("image::encode: field \"{}\" is {}", field_, field.text()), {},
          "it encodes u8[height, width, channels] of 1 or 3 channels (png: 1 to 4), as decode() "
          "gives without to_float()");
    field.dtype = Dtype::bytes;
    field.shape = {};
    return spec;
  }

  Result<void> run(const BlockView& in, const BlockView& out,
                   const OpContext& context) const override {
    const std::size_t index = index_in(*in.spec);
    copy_other_columns(in, out, index);
    return each_row(in, context, [&](std::size_t row) {
      return encode(in, index, row, out.columns[index].tensors[row]);
    });
  }

 private:
  [[nodiscard]] std::size_t index_in(const ElementSpec& spec) const {
    return field_index("image::encode", field_, spec);
  }

  Result<void> encode(const BlockView& in, std::size_t index, std::size_t row, Tensor& out) const {
    const Column& column = in.columns[index];
    const Shape& shape =
        column.dense() ? in.spec->fields[index].shape : column.tensors[row].shape();
    PlainPixels pixels{column.dense() ? std::span<const std::byte>(
                                            column.data + row * column.row_bytes, column.row_bytes)
                                      : column.tensors[row].raw(),
                       shape[0], shape[1], static_cast<int>(shape[2])};
    const bool fits = pixels.channels == 1 || pixels.channels == 3 ||
                      (format_ == "png" && (pixels.channels == 2 || pixels.channels == 4));
    if (!fits)
      return Failure{fmt::format("image::encode: the image has {} channels", pixels.channels)};
    auto bytes = format_ == "jpeg" ? encode_jpeg(pixels, quality_) : encode_png(pixels);
    if (!bytes) return std::move(bytes.failure());
    const auto owner = std::make_shared<const Bytes>(std::move(*bytes));
    out = Tensor::view(Dtype::bytes, {}, *owner, owner);
    return {};
  }

  const std::string format_;
  const int quality_;
  const std::string field_;
};

}  // namespace

std::shared_ptr<const Op> make_encode_image(const Json& arguments) {
  try {
    return std::make_shared<EncodeImage>(arguments.at("format").get<std::string>(),
                                         whole_number<int>(arguments.at("quality")),
                                         arguments.at("field").get<std::string>());
  } catch (const Json::exception& error) {
    throw ConfigError(fmt::format("image::encode: {}", error.what()));
  }
}

OpCall image::encode(const EncodeOptions& options) {
  return OpCall(make_encode_image(
      {{"format", options.format}, {"quality", options.quality}, {"field", options.field}}));
}

}  // namespace penstock
