#include <penstock/train/loss.h>

#include <fmt/format.h>
#include <penstock/error.h>

#include "labels.h"

namespace penstock::train {
namespace F = torch::nn::functional;
namespace {

void expect_same_shape(const char* name, const torch::Tensor& output, const torch::Tensor& target) {
  if (output.sizes() == target.sizes()) return;
  throw ConfigError(fmt::format("{}: the model returns {}, the target is {}", name,
                                tensor_text(output), tensor_text(target)),
                    {}, "give them the same shape in the last layer or a map");
}

template <typename F>
Loss like_target(const char* name, F loss) {
  return {name, [name, loss](const torch::Tensor& output, const torch::Tensor& given) {
            // [rows, 1] and [rows] would broadcast to all pairs.
            const bool column = output.dim() == given.dim() + 1 && output.size(-1) == 1;
            const torch::Tensor target =
                (column ? given.unsqueeze(-1) : given).to(output.scalar_type());
            expect_same_shape(name, output, target);
            return row_means(loss(output, target));
          }};
}

}  // namespace

Loss cross_entropy(double label_smoothing) {
  if (label_smoothing < 0 || label_smoothing >= 1)
    throw ConfigError(fmt::format("cross_entropy: label_smoothing of {}", label_smoothing), {},
                      "it is in [0, 1)");
  return {
      "cross_entropy", [label_smoothing](const torch::Tensor& output, const torch::Tensor& target) {
        const torch::Tensor labels = class_labels("cross_entropy", output, target);
        return row_means(F::cross_entropy(
            output, labels,
            F::CrossEntropyFuncOptions().reduction(torch::kNone).label_smoothing(label_smoothing)));
      }};
}

Loss mean_squared_error() {
  return like_target("mean_squared_error", [](const auto& output, const auto& target) {
    return F::mse_loss(output, target, F::MSELossFuncOptions().reduction(torch::kNone));
  });
}

Loss mean_absolute_error() {
  return like_target("mean_absolute_error", [](const auto& output, const auto& target) {
    return F::l1_loss(output, target, F::L1LossFuncOptions().reduction(torch::kNone));
  });
}

Loss huber(double delta) {
  if (!(delta > 0)) throw ConfigError(fmt::format("huber: delta of {} is not positive", delta));
  return like_target("huber", [delta](const auto& output, const auto& target) {
    return F::huber_loss(output, target,
                         F::HuberLossFuncOptions().reduction(torch::kNone).delta(delta));
  });
}

Loss binary_cross_entropy() {
  return like_target("binary_cross_entropy", [](const auto& output, const auto& target) {
    return F::binary_cross_entropy_with_logits(
        output, target, F::BinaryCrossEntropyWithLogitsFuncOptions().reduction(torch::kNone));
  });
}

}  // namespace penstock::train
