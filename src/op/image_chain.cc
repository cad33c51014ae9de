// tested in src/op/image_ops_test.cc
// A chain of image steps as one op: every row goes from its encoded bytes into the batch in one
// pass.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/mix.h"
#include "op/each_row.h"
#include "op/image_step.h"
#include "op/op.h"
#include "penstock/image.h"
#include "sample/rows.h"
#include "trace/activity.h"
#include "trace/phases.h"

namespace penstock {
namespace {

struct ChainStep {
  std::string word;
  Json arguments;
  std::shared_ptr<const ImageStep> step;
};

ChainStep make_step(const std::string& word, const Json& given) {
  const StepKind& kind = image_step_kind(word);
  Json arguments = complete_arguments(kind, given);
  auto step = kind.make(StepArguments(word, arguments));
  return {word, std::move(arguments), std::move(step)};
}

/// Only the arguments that differ from their defaults, for readability.
std::string describe_step(const ChainStep& step) {
  std::string text;
  for (const StepParameter& parameter : image_step_kind(step.word).parameters) {
    const Json& value = step.arguments.at(parameter.name);
    if (value == parameter.fallback) continue;
    if (!text.empty()) text += ", ";
    text += parameter.fallback.is_null() ? value.dump() : parameter.name + "=" + value.dump();
  }
  return text.empty() ? step.word : fmt::format("{}({})", step.word, text);
}

ImageSpec image_of(const FieldSpec& field) {
  ImageSpec image;
  if (field.dtype == Dtype::bytes) {
    image.encoded = true;
    return image;
  }
  const std::size_t rank = field.shape.size();
  const bool fits =
      (rank == 2 || rank == 3) &&
      (field.dtype == Dtype::u8 || field.dtype == Dtype::u16 || field.dtype == Dtype::f32);
  if (!fits)
    throw ConfigError(fmt::format("image: field \"{}\" is {}", field.path, field.text()), {},
                      "images are bytes of a file, or u8, u16 or f32 of shape [height, width] or "
                      "[height, width, channels]");
  image.height = field.shape[0];
  image.width = field.shape[1];
  const std::int64_t channels = rank == 2 ? 1 : field.shape[2];
  if (channels != kUnknown && (channels < 1 || channels > 4))
    throw ConfigError(
        fmt::format("image: field \"{}\" is {}: {} channels", field.path, field.text(), channels),
        {}, "channels come last, and there are 1 to 4");
  image.channels = channels == kUnknown ? 0 : static_cast<int>(channels);
  image.dtype = field.dtype;
  image.white = field.dtype == Dtype::u8 ? 255 : field.dtype == Dtype::u16 ? 65535 : 1;
  return image;
}

class ImageChain final : public Op {
 public:
  ImageChain(std::vector<ChainStep> steps, std::string field, std::uint64_t seed)
      : steps_(std::move(steps)), field_(std::move(field)), seed_(seed) {
    for (const ChainStep& step : steps_) {
      random_ = random_ || step.step->random();
      if (const DecodeRequest* const request = step.step->request()) request_ = *request;
    }
  }
  [[nodiscard]] std::string word() const override { return "image"; }
  [[nodiscard]] std::string describe() const override {
    std::string text = "image";
    for (const ChainStep& step : steps_) text += fmt::format(" {}", describe_step(step));
    return random_ ? fmt::format("{}, seed={}", text, seed_) : text;
  }
  [[nodiscard]] Json arguments() const override {
    Json steps = Json::array();
    for (const ChainStep& step : steps_) steps.push_back({step.word, step.arguments});
    return {{"steps", steps}, {"field", field_}, {"seed", seed_}};
  }
  [[nodiscard]] bool random() const override { return random_; }
  [[nodiscard]] std::uint64_t seed() const override { return seed_; }

  [[nodiscard]] ElementSpec output(const ElementSpec& input) const override {
    if (!input.known) return input;
    ElementSpec spec = input;
    FieldSpec& field = spec.fields[index_in(input)];
    const ImageSpec image = image_after(field);
    const std::int64_t channels = image.channels == 0 ? kUnknown : image.channels;
    field.dtype = image.dtype;
    field.shape = image.planes ? Shape{channels, image.height, image.width}
                               : Shape{image.height, image.width, channels};
    return spec;
  }

  Result<void> run(const BlockView& in, const BlockView& out,
                   const OpContext& context) const override {
    const std::size_t index = index_in(*in.spec);
    copy_other_columns(in, out, index);
    const ImageSpec wanted = image_after(in.spec->fields[index]);
    return each_row(in, context, [&](std::size_t row) -> Result<void> {
      const trace::PhaseTimer timer(trace::Phase::image);
      auto picture = through_steps(in, index, row, context);
      if (!picture) return std::move(picture.failure());
      return write(*picture, wanted, out, index, row);
    });
  }

 private:
  [[nodiscard]] std::size_t index_in(const ElementSpec& spec) const {
    if (const auto index = spec.find(field_.empty() ? "image" : field_)) return *index;
    if (field_.empty() && spec.fields.size() == 1) return 0;
    throw ConfigError(
        fmt::format("image: no field \"{}\" in {}", field_.empty() ? "image" : field_, spec.text()),
        {}, "name it: decode and of take the name of the field");
  }

  [[nodiscard]] ImageSpec image_after(const FieldSpec& field) const {
    ImageSpec image = image_of(field);
    if (image.encoded && !request_)
      throw ConfigError(fmt::format("image: field \"{}\" contains encoded bytes", field.path), {},
                        "start the chain with decode");
    for (const ChainStep& step : steps_) image = step.step->output(image);
    return image;
  }

  Result<Picture> open(const BlockView& in, std::size_t index, std::size_t row,
                       const Context& context) const {
    const Column& column = in.columns[index];
    const FieldSpec& field = in.spec->fields[index];
    if (request_) {
      const std::span<const std::byte> bytes = column.tensors[row].raw();
      auto info = probe_image(bytes, request_->limits);
      if (!info) return std::move(info.failure());
      const bool wide_array = info->format == ImageFormat::npy && info->dtype == Dtype::u16;
      if (wide_array && !request_->keep_16_bit)
        return Failure{"decode: the array is u16", {}, "set keep_16_bit in decode, for all images"};
      if (info->dtype != Dtype::u8 && info->dtype != Dtype::u16)
        return Failure{fmt::format("decode: the array is {}, not bytes", dtype_name(info->dtype)),
                       {},
                       "decode() is for images of u8 or u16"};
      return Picture(bytes, *info, *request_, context);
    }
    // Rows of a block have no slack after them, which the resize may read.
    const bool dense = column.dense();
    const Shape& shape = dense ? field.shape : column.tensors[row].shape();
    Pixels pixels;
    pixels.height = shape[0];
    pixels.width = shape[1];
    pixels.channels = shape.size() == 2 ? 1 : static_cast<int>(shape[2]);
    pixels.dtype = field.dtype;
    pixels.stride = static_cast<std::size_t>(pixels.width) *
                    static_cast<std::size_t>(pixels.channels) * dtype_size(field.dtype);
    const std::size_t size = pixels.stride * static_cast<std::size_t>(pixels.height);
    if (size == 0 || pixels.channels < 1 || pixels.channels > 4)
      return Failure{fmt::format("image: an image of shape {}", shape_text(shape)),
                     {},
                     "images have rows, columns and 1 to 4 channels"};
    std::byte* const copy = context.scratch.allocate(size + Pixels::kSlack);
    std::memcpy(copy,
                dense ? column.data + row * column.row_bytes : column.tensors[row].raw().data(),
                size);
    pixels.data = copy;
    return Picture(pixels, context);
  }

  Result<Picture> through_steps(const BlockView& in, std::size_t index, std::size_t row,
                                const OpContext& context) const {
    auto picture = open(in, index, row, context);
    if (!picture) return picture;
    std::uint64_t drawn = 0;
    if (random_) drawn = (*context.rng)(row)();
    std::uint64_t ordinal = 0;  // each random step has its own numbers
    for (const ChainStep& each : steps_) {
      Rng rng(drawn, ordinal);
      if (each.step->random()) ++ordinal;
      if (auto in_time = picture->check_time(); !in_time) return std::move(in_time.failure());
      if (auto done = each.step->apply(*picture, rng); !done) return std::move(done.failure());
    }
    return picture;
  }

  static Result<void> write(Picture& picture, const ImageSpec& wanted, const BlockView& out,
                            std::size_t index, std::size_t row) {
    const Column& to = out.columns[index];
    const std::size_t size =
        static_cast<std::size_t>(picture.height()) * static_cast<std::size_t>(picture.width()) *
        static_cast<std::size_t>(picture.channels()) * dtype_size(wanted.dtype);
    if (to.dense()) {
      if (size != to.row_bytes)
        return Failure{fmt::format(
            "image: the result is {} x {} with {} channel(s), the plan was {}", picture.height(),
            picture.width(), picture.channels(), out.spec->fields[index].text())};
      return picture.store(to.data + row * to.row_bytes, wanted.dtype, wanted.planes);
    }
    const std::shared_ptr<std::byte[]> memory(new std::byte[size]);
    if (auto done = picture.store(memory.get(), wanted.dtype, wanted.planes); !done) return done;
    Shape shape{picture.height(), picture.width(), picture.channels()};
    if (wanted.planes) shape = {picture.channels(), picture.height(), picture.width()};
    to.tensors[row] = Tensor::view(wanted.dtype, std::move(shape), {memory.get(), size}, memory);
    return {};
  }

  std::vector<ChainStep> steps_;
  std::string field_;
  std::uint64_t seed_;
  bool random_ = false;
  std::optional<DecodeRequest> request_;
};

}  // namespace

std::shared_ptr<const Op> make_image_chain(const Json& arguments) {
  std::vector<ChainStep> steps;
  const Json list = arguments.value("steps", Json());
  if (!list.is_array()) throw ConfigError("image: its steps must be a list");
  for (const Json& step : list) {
    if (!step.is_array() || step.size() != 2 || !step[0].is_string())
      throw ConfigError("image: a step is a word and its arguments");
    steps.push_back(make_step(step[0].get<std::string>(), step[1]));
  }
  return std::make_shared<ImageChain>(
      std::move(steps), arguments.value("field", std::string()),
      whole_number<std::uint64_t>(arguments.value("seed", Json(0))));
}

namespace image {

struct Chain::Impl {
  std::vector<ChainStep> steps = {};
  std::string field = {};
  std::uint64_t seed = 0;

  /// A copy with one more step; throws ConfigError if its arguments are wrong.
  [[nodiscard]] Chain with(const std::string& word, const Json& given) const {
    auto next = std::make_shared<Impl>(*this);
    next->steps.push_back(make_step(word, given));
    return Chain(std::move(next));
  }
};

Chain of(std::string field) {
  return Chain(std::make_shared<Chain::Impl>(Chain::Impl{.field = std::move(field)}));
}

Chain decode(const DecodeOptions& options) {
  return of(options.field)
      .impl_->with("decode", {{"channels", options.channels},
                              {"keep_16_bit", options.keep_16_bit},
                              {"fast_scale", options.fast_scale},
                              {"pixels_max", options.pixels_max},
                              {"side_max", options.side_max},
                              {"bytes_max", options.bytes_max},
                              {"time_max", options.time_max}});
}

Chain Chain::step(const std::string& word, const std::string& arguments) const {
  const auto given = parse_json(arguments);
  if (!given) throw ConfigError(fmt::format("{}: its arguments are not JSON", word));
  return impl_->with(word, *given);
}

Chain Chain::seed(std::uint64_t seed) const {
  auto next = std::make_shared<Impl>(*impl_);
  next->seed = seed;
  return Chain(std::move(next));
}

Chain::operator OpCall() const {
  return OpCall(std::make_shared<ImageChain>(impl_->steps, impl_->field, impl_->seed));
}

Chain Chain::resize(std::int64_t height, std::int64_t width, const ResizeOptions& options) const {
  return impl_->with("resize", {{"height", height},
                                {"width", width},
                                {"filter", options.filter},
                                {"antialias", options.antialias}});
}
Chain Chain::resize_short(std::int64_t size, const ResizeOptions& options) const {
  return impl_->with(
      "resize_short",
      {{"size", size}, {"filter", options.filter}, {"antialias", options.antialias}});
}
Chain Chain::crop(std::int64_t y, std::int64_t x, std::int64_t height, std::int64_t width) const {
  return impl_->with("crop", {{"y", y}, {"x", x}, {"height", height}, {"width", width}});
}
Chain Chain::center_crop(std::int64_t height, std::int64_t width) const {
  return impl_->with("center_crop", {{"height", height}, {"width", width}});
}
Chain Chain::random_crop(std::int64_t height, std::int64_t width) const {
  return impl_->with("random_crop", {{"height", height}, {"width", width}});
}
Chain Chain::random_resized_crop(std::int64_t height, std::int64_t width,
                                 const ResizedCropOptions& options) const {
  return impl_->with("random_resized_crop", {{"height", height},
                                             {"width", width},
                                             {"scale", pair_of(options.scale)},
                                             {"ratio", pair_of(options.ratio)},
                                             {"antialias", options.antialias}});
}
Chain Chain::pad(const PadOptions& options) const {
  return impl_->with("pad", {{"top", options.top},
                             {"bottom", options.bottom},
                             {"left", options.left},
                             {"right", options.right},
                             {"value", options.value}});
}
Chain Chain::random_flip(const FlipOptions& options) const {
  return impl_->with("random_flip", {{"horizontal", options.horizontal},
                                     {"vertical", options.vertical},
                                     {"chance", options.chance}});
}
Chain Chain::rotate90(std::int64_t turns) const {
  return impl_->with("rotate90", {{"turns", turns}});
}
Chain Chain::random_rotate90() const {
  return impl_->with("random_rotate90", Json::object());
}
Chain Chain::random_brightness(double delta) const {
  return impl_->with("random_brightness", {{"delta", delta}});
}
Chain Chain::random_contrast(double low, double high) const {
  return impl_->with("random_contrast", {{"low", low}, {"high", high}});
}
Chain Chain::random_saturation(double low, double high) const {
  return impl_->with("random_saturation", {{"low", low}, {"high", high}});
}
Chain Chain::random_hue(double delta) const {
  return impl_->with("random_hue", {{"delta", delta}});
}
Chain Chain::grayscale(double chance) const {
  return impl_->with("grayscale", {{"chance", chance}});
}
Chain Chain::color_jitter(const JitterOptions& options) const {
  return impl_->with("color_jitter", {{"brightness", options.brightness},
                                      {"contrast", options.contrast},
                                      {"saturation", options.saturation},
                                      {"hue", options.hue}});
}
Chain Chain::gaussian_blur(const BlurOptions& options) const {
  return impl_->with("gaussian_blur",
                     {{"sigma", pair_of(options.sigma)}, {"chance", options.chance}});
}
Chain Chain::random_erasing(const ErasingOptions& options) const {
  return impl_->with("random_erasing", {{"chance", options.chance},
                                        {"scale", pair_of(options.scale)},
                                        {"ratio", pair_of(options.ratio)},
                                        {"value", options.value}});
}
Chain Chain::normalize(std::vector<double> mean, std::vector<double> std) const {
  return impl_->with("normalize", {{"mean", std::move(mean)}, {"std", std::move(std)}});
}
Chain Chain::to_float(Dtype dtype) const {
  return impl_->with("to_float", {{"dtype", std::string(dtype_name(dtype))}});
}
Chain Chain::to_bytes() const {
  return impl_->with("to_bytes", Json::object());
}
Chain Chain::channels_first() const {
  return impl_->with("channels_first", Json::object());
}

}  // namespace image
}  // namespace penstock
