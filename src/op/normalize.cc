// tested in src/op/image_ops_test.cc
#include "op/image_step.h"

namespace penstock {
namespace {

/// (value - mean) / std per channel, with mean and std as fractions of white; returns f32.
class Normalize final : public ImageStep {
 public:
  explicit Normalize(const StepArguments& arguments)
      : mean_(arguments.numbers("mean")), std_(arguments.numbers("std")) {
    if (mean_.size() != std_.size() || mean_.empty() || mean_.size() > 4)
      arguments.refuse(fmt::format("mean has {} and std {} numbers", mean_.size(), std_.size()),
                       "give one for all channels, or one for each");
    for (const double value : std_)
      if (value <= 0) arguments.refuse(fmt::format("std must be positive, got {}", value));
    for (const double value : mean_)
      if (value < -1 || value > 2)
        arguments.refuse(fmt::format("mean {} is far outside of [0, 1]", value),
                         "mean and std are fractions of white: divide by 255");
  }
  [[nodiscard]] ImageSpec output(const ImageSpec& in) const override {
    expect_range("normalize", in);
    if (mean_.size() > 1 && in.channels != 0 && static_cast<int>(mean_.size()) != in.channels)
      refuse_step(
          "normalize",
          fmt::format("got {} means for images of {} channel(s)", mean_.size(), in.channels),
          "give one for all channels, or one for each");
    ImageSpec out = in;
    if (in.dtype == Dtype::u8 || in.dtype == Dtype::u16) out.dtype = Dtype::f32;
    out.white = 0;
    return out;
  }
  Result<void> apply(Picture& picture, Rng&) const override {
    PointOp op{PointOp::Kind::scale, {1, 1, 1, 1}, {}};
    for (std::size_t c = 0; c < 4; ++c) {
      const std::size_t at = std::min(c, mean_.size() - 1);
      op.a[c] = static_cast<float>(1 / (std_[at] * static_cast<double>(picture.white())));
      op.b[c] = static_cast<float>(-mean_[at] / std_[at]);
    }
    picture.point(op);
    picture.set_normalized();
    return {};
  }

 private:
  std::vector<double> mean_;
  std::vector<double> std_;
};

}  // namespace

StepKind normalize_kind() {
  return {"normalize",
          "Subtracts the mean and divides by std, per channel, with white as 1. Returns f32.",
          {{"mean", Json::array({0.485, 0.456, 0.406}), "of each channel, as fractions of white"},
           {"std", Json::array({0.229, 0.224, 0.225}), "of each channel, as fractions of white"}},
          [](const StepArguments& arguments) { return std::make_unique<Normalize>(arguments); }};
}

}  // namespace penstock
