#include <penstock/train/network.h>

#include <fmt/format.h>
#include <penstock/error.h>

#include "named_values.h"

namespace penstock::train {

void detail::throw_inputs(std::size_t given, std::size_t taken) {
  throw ConfigError(
      fmt::format("model: forward takes {} tensors, {} inputs were named", taken, given), {},
      "name as many fields in ModelOptions::inputs as forward has parameters");
}

void copy_values(const torch::nn::Module& from, torch::nn::Module& to) {
  const torch::NoGradGuard no_grad;
  load_values("model", named_values(from), to);
}

Network Network::copy(const torch::Device& device) const {
  Network made = *this;
  if (make_) {
    made.module_ = make_();
    copy_values(*module_, *made.module_);
    made.module_->to(device);
    return made;
  }
  try {
    made.module_ = module_->clone(device);
  } catch (const c10::Error&) {
    throw ConfigError(
        fmt::format("model: {} cannot be copied for further replicas", module_->name()), {},
        "derive it from torch::nn::Cloneable, or pass a function that creates one: "
        "Model([] { return Net(); })");
  }
  made.module_->train(module_->is_training());
  return made;
}

}  // namespace penstock::train
