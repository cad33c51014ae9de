// tested in src/op/mixing_test.cc
#include <algorithm>
#include <cmath>
#include <cstring>

#include "op/mixing.h"

namespace penstock {
namespace {

class Cutmix final : public MixingOp {
 public:
  explicit Cutmix(const Json& arguments) : MixingOp("cutmix", arguments) {}

 protected:
  double mix(const Pair& pair, double share, Rng& rng) const override {
    // There are few channels: if they come first, each plane is an image of one channel.
    const bool planes = pair.shape[0] <= 4 && pair.shape[2] > 4;
    const std::int64_t height = planes ? pair.shape[1] : pair.shape[0];
    const std::int64_t width = planes ? pair.shape[2] : pair.shape[1];
    const std::int64_t channels = planes ? 1 : pair.shape[2];
    const double side = std::sqrt(1 - share);
    const auto around = [&rng, side](std::int64_t size) {
      const double half = side * static_cast<double>(size) / 2;
      const double center = rng.uniform(0, static_cast<double>(size));
      const auto first = static_cast<std::int64_t>(std::max(0.0, std::round(center - half)));
      const auto end =
          static_cast<std::int64_t>(std::min(static_cast<double>(size), std::round(center + half)));
      return std::pair(first, std::max(first, end));
    };
    const auto [top, bottom] = around(height);
    const auto [left, right] = around(width);
    for (std::int64_t plane = 0; plane < (planes ? pair.shape[0] : 1); ++plane)
      for (std::int64_t y = top; y < bottom; ++y) {
        const std::int64_t at = ((plane * height + y) * width + left) * channels;
        std::copy_n(pair.partner + at, (right - left) * channels, pair.out + at);
      }
    return 1 - static_cast<double>((bottom - top) * (right - left)) /
                   static_cast<double>(height * width);
  }
};

}  // namespace

std::shared_ptr<const Op> make_cutmix(const Json& arguments) {
  return std::make_shared<Cutmix>(arguments);
}

OpCall image::cutmix(const MixOptions& options) {
  return OpCall(make_cutmix(mixing_arguments(options)));
}

}  // namespace penstock
