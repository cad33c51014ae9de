#include <chrono>
#include <cmath>

#include "op/image_step.h"

namespace penstock {
namespace {

constexpr double kSecondsMax = 1e6;

/// Only describes the result of decode; the chain creates the picture.
class Decode final : public ImageStep {
 public:
  explicit Decode(const StepArguments& arguments) : fast_scale_(arguments.flag("fast_scale")) {
    const std::int64_t channels = arguments.integer("channels");
    if (channels != 0 && channels != 1 && channels != 3 && channels != 4)
      arguments.refuse(fmt::format("channels must be 1, 3, 4 or 0 (as stored), got {}", channels));
    const auto limit = [&](const char* name) {
      const std::int64_t value = arguments.integer(name);
      if (value < 1) arguments.refuse(fmt::format("{} must be positive, got {}", name, value));
      return static_cast<std::uint64_t>(value);
    };
    const double seconds = arguments.number("time_max");
    if (!(seconds > 0 && seconds <= kSecondsMax))
      arguments.refuse(
          fmt::format("time_max must be seconds up to {}, got {}", kSecondsMax, seconds));
    request_.channels = static_cast<int>(channels);
    request_.keep_16_bit = arguments.flag("keep_16_bit");
    request_.limits = {
        .pixels_max = limit("pixels_max"),
        .side_max = limit("side_max"),
        .bytes_max = limit("bytes_max"),
        .time_max = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1e3)))};
  }
  [[nodiscard]] const DecodeRequest* request() const override { return &request_; }

  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    if (!in.encoded)
      refuse_step("decode", "the image is decoded already",
                  "start the chain with of(field) instead");
    ImageSpec out;
    out.channels = request_.channels;
    if (request_.keep_16_bit) {
      out.dtype = Dtype::u16;
      out.white = 65535;
    }
    return out;
  }
  Result<void> apply(Picture& picture, Rng&) const override {
    if (fast_scale_) picture.allow_fast_scale();
    if (request_.keep_16_bit && picture.white() < 65535) {
      // An 8-bit file among 16-bit files: white is white.
      const float factor = 65535.0F / picture.white();
      picture.point({PointOp::Kind::scale, {factor, factor, factor, factor}, {}});
      picture.set_white(65535);
    }
    return {};
  }

 private:
  DecodeRequest request_;
  bool fast_scale_;
};

}  // namespace

StepKind decode_kind() {
  const image::DecodeOptions defaults;
  return {"decode",
          "Decodes an encoded file; the format is detected from the content.",
          {{"channels", defaults.channels, "1 gray, 3 RGB, 4 RGB and alpha, 0 as stored"},
           {"keep_16_bit", defaults.keep_16_bit, "16-bit values stay u16; otherwise all become u8"},
           {"fast_scale", defaults.fast_scale,
            "a JPEG may be decoded at 1/2, 1/4 or 1/8 before a resize"},
           {"pixels_max", defaults.pixels_max, "images with more pixels fail"},
           {"side_max", defaults.side_max, "images that are higher or wider fail"},
           {"bytes_max", defaults.bytes_max, "files with more bytes fail"},
           {"time_max", defaults.time_max, "seconds for decoding, and again for the ops after it"}},
          [](const StepArguments& arguments) { return std::make_unique<Decode>(arguments); }};
}

}  // namespace penstock
