// tested in src/op/mixing_test.cc
#include "op/mixing.h"

#include <cmath>

#include "base/json.h"
#include "penstock/error.h"
#include "sample/rows.h"

namespace penstock {
namespace {

/// Gamma(shape, 1), after Marsaglia and Tsang (2000).
double draw_gamma(double shape, Rng& rng) {
  if (shape < 1) return draw_gamma(shape + 1, rng) * std::pow(1 - rng.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = rng.normal();
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    if (std::log(1 - rng.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

double draw_beta(double alpha, Rng& rng) {
  const double a = draw_gamma(alpha, rng);
  const double b = draw_gamma(alpha, rng);
  return a + b > 0 ? a / (a + b) : 0.5;
}

const float* row_of(const Column& column, std::size_t row) {
  return reinterpret_cast<const float*>(column.data + row * column.row_bytes);
}

}  // namespace

MixingOp::MixingOp(std::string word, const Json& arguments)
    : word_(std::move(word)), arguments_(arguments) {
  try {
    alpha_ = arguments.at("alpha").get<double>();
    chance_ = arguments.at("chance").get<double>();
    seed_ = whole_number<std::uint64_t>(arguments.at("seed"));
    image_ = arguments.at("image").get<std::string>();
    label_ = arguments.at("label").get<std::string>();
  } catch (const Json::exception& error) {
    throw ConfigError(fmt::format("{}: {}", word_, error.what()));
  }
  if (!(alpha_ > 0) || alpha_ > 1e6)
    throw ConfigError(fmt::format("{}: alpha must be positive, got {}", word_, alpha_));
  if (!(chance_ > 0) || chance_ > 1)
    throw ConfigError(fmt::format("{}: chance must be in (0, 1], got {}", word_, chance_));
}

std::string MixingOp::describe() const {
  return fmt::format("{}(alpha={}), seed={}", word_, alpha_, seed_);
}

ElementSpec MixingOp::output(const ElementSpec& input) const {
  if (!input.known) return input;
  const FieldSpec& image = input.fields[field_index(word_, image_, input)];
  const FieldSpec& label = input.fields[field_index(word_, label_, input)];
  if (image.dtype != Dtype::f32 || image.shape.size() != 3 || !is_dense(image))
    throw ConfigError(fmt::format("{}: field \"{}\" is {}", word_, image_, image.text()), {},
                      "it mixes f32 images: end the image chain with to_float() or normalize()");
  if (label.dtype != Dtype::f32 || label.shape.size() != 1 || !is_dense(label))
    throw ConfigError(fmt::format("{}: field \"{}\" is {}", word_, label_, label.text()), {},
                      "it mixes f32 vectors: map(image::one_hot(classes)) first");
  return input;
}

Result<void> MixingOp::run(const BlockView& in, const BlockView& out,
                           const OpContext& context) const {
  copy_other_columns(in, out, in.columns.size());
  const std::size_t image = field_index(word_, image_, *in.spec);
  const std::size_t label = field_index(word_, label_, *in.spec);
  const std::size_t classes = in.columns[label].row_bytes / sizeof(float);
  for (std::size_t row = 0; row < in.rows; ++row) {
    Rng rng = (*context.rng)(row);
    if (rng.uniform() >= chance_) continue;
    const auto partner = static_cast<std::size_t>(rng.integer(in.rows));
    const double drawn = draw_beta(alpha_, rng);
    auto* const pixels =
        reinterpret_cast<float*>(out.columns[image].data + row * out.columns[image].row_bytes);
    const double kept = mix({row_of(in.columns[image], row), row_of(in.columns[image], partner),
                             pixels, in.spec->fields[image].shape},
                            drawn, rng);
    const float* const own = row_of(in.columns[label], row);
    const float* const other = row_of(in.columns[label], partner);
    auto* const mixed =
        reinterpret_cast<float*>(out.columns[label].data + row * out.columns[label].row_bytes);
    for (std::size_t c = 0; c < classes; ++c)
      mixed[c] = static_cast<float>(kept) * own[c] + static_cast<float>(1 - kept) * other[c];
  }
  return {};
}

Json mixing_arguments(const image::MixOptions& options) {
  return {{"alpha", options.alpha},
          {"chance", options.chance},
          {"seed", options.seed},
          {"image", options.image},
          {"label", options.label}};
}

}  // namespace penstock
