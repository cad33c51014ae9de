// tested in src/op/mixing_test.cc
#include "op/mixing.h"

namespace penstock {
namespace {

class Mixup final : public MixingOp {
 public:
  explicit Mixup(const Json& arguments) : MixingOp("mixup", arguments) {}

 protected:
  double mix(const Pair& pair, double share, Rng&) const override {
    const auto own = static_cast<float>(share);
    const std::size_t values = shape_values(pair.shape);
    for (std::size_t i = 0; i < values; ++i)
      pair.out[i] = own * pair.own[i] + (1 - own) * pair.partner[i];
    return share;
  }
};

}  // namespace

std::shared_ptr<const Op> make_mixup(const Json& arguments) {
  return std::make_shared<Mixup>(arguments);
}

OpCall image::mixup(const MixOptions& options) {
  return OpCall(make_mixup(mixing_arguments(options)));
}

}  // namespace penstock
