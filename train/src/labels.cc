// tested in train/tests/loss_test.cc
#include "labels.h"

#include <fmt/format.h>
#include <penstock/error.h>

namespace penstock::train {

torch::Tensor class_labels(const char* word, const torch::Tensor& output,
                           const torch::Tensor& target) {
  if (output.dim() < 2)
    throw ConfigError(fmt::format("{}: the model returns {}, without a score for each class", word,
                                  tensor_text(output)),
                      {}, "end the model with a layer that has one output per class");
  if (target.is_floating_point()) {
    if (output.sizes() == target.sizes()) return target.to(output.scalar_type());  // probabilities
    throw ConfigError(
        fmt::format("{}: labels are {}, scores {}", word, tensor_text(target), tensor_text(output)),
        {}, "labels are whole numbers, or one probability for each score");
  }
  torch::Tensor labels = target.to(torch::kInt64);
  if (labels.dim() == output.dim() && labels.size(1) == 1) labels = labels.squeeze(1);
  if (labels.size(0) != output.size(0) || labels.dim() != output.dim() - 1)
    throw ConfigError(
        fmt::format("{}: labels are {}, scores {}", word, tensor_text(target), tensor_text(output)),
        {}, "there is one label for each row of scores");
  const std::int64_t classes = output.size(1);
  const torch::Tensor wrong = torch::logical_or(labels < 0, labels >= classes);
  if (labels.numel() > 0 && wrong.any().item<bool>()) {
    const auto at = wrong.flatten().nonzero()[0].item<std::int64_t>();
    const auto label = labels.flatten()[at].item<std::int64_t>();
    throw LabelError(fmt::format("{}: label {} of a model with {} classes (0 to {})", word, label,
                                 classes, classes - 1),
                     at / std::max<std::int64_t>(1, labels.numel() / labels.size(0)));
  }
  return labels;
}

}  // namespace penstock::train
