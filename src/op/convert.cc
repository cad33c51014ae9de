// The output of a chain: floats or bytes, channels last or first.
// tested in src/op/image_ops_test.cc
#include "op/image_step.h"

namespace penstock {
namespace {

/// Scales values so that white becomes `white`.
void rescale(Picture& picture, float white) {
  if (picture.white() == white) return;
  const float factor = white / picture.white();
  picture.point({PointOp::Kind::scale, {factor, factor, factor, factor}, {}});
  picture.set_white(white);
}

class ToFloat final : public ImageStep {
 public:
  explicit ToFloat(const StepArguments& arguments) {
    const std::string name = arguments.text("dtype");
    if (name == "f16") {
      dtype_ = Dtype::f16;
    } else if (name == "bf16") {
      dtype_ = Dtype::bf16;
    } else if (name != "f32") {
      arguments.refuse(fmt::format("dtype must be f32, f16 or bf16, got {}", name));
    }
  }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_channels_last("to_float", in);
    ImageSpec out = in;
    out.dtype = dtype_;
    if (in.white != 0) out.white = 1;
    return out;
  }
  Result<void> apply(Picture& picture, Rng&) const override {
    if (!picture.normalized()) rescale(picture, 1);
    return {};
  }

 private:
  Dtype dtype_ = Dtype::f32;
};

class ToBytes final : public ImageStep {
 public:
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_range("to_bytes", in);
    ImageSpec out = in;
    out.dtype = Dtype::u8;
    out.white = 255;
    return out;
  }
  Result<void> apply(Picture& picture, Rng&) const override {
    rescale(picture, 255);
    return {};
  }
};

class ChannelsFirst final : public ImageStep {
 public:
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_channels_last("channels_first", in);
    ImageSpec out = in;
    out.planes = true;
    return out;
  }
  Result<void> apply(Picture&, Rng&) const override { return {}; }
};

}  // namespace

StepKind to_float_kind() {
  return {"to_float",
          "Converts to floats with white as 1. After normalize only the dtype changes.",
          {{"dtype", "f32", "f32, f16 or bf16"}},
          [](const StepArguments& arguments) { return std::make_unique<ToFloat>(arguments); }};
}
StepKind to_bytes_kind() {
  return {"to_bytes",
          "Converts to u8 with white as 255, rounded to nearest.",
          {},
          [](const StepArguments&) { return std::make_unique<ToBytes>(); }};
}
StepKind channels_first_kind() {
  return {"channels_first",
          "Converts interleaved channels (HWC) to planes (CHW); must be the last step.",
          {},
          [](const StepArguments&) { return std::make_unique<ChannelsFirst>(); }};
}

}  // namespace penstock
