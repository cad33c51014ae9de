// tested in train/tests/loss_test.cc
#include <penstock/train/metric.h>

#include <fmt/format.h>
#include <penstock/error.h>
#include <penstock/train/tensors.h>

#include "labels.h"

namespace penstock::train {
namespace {

/// The predicted and the true class of each row.
std::pair<torch::Tensor, torch::Tensor> classes(const torch::Tensor& output,
                                                const torch::Tensor& target) {
  const bool binary = output.dim() == 1 || output.size(1) == 1;
  const torch::Tensor called =
      binary ? (output.flatten() > 0).to(torch::kInt64) : output.argmax(1).to(torch::kInt64);
  torch::Tensor right = target;
  if (right.is_floating_point() && right.sizes() == output.sizes() && !binary) {
    right = right.argmax(1);
  } else if (right.numel() == called.numel()) {
    right = right.reshape(called.sizes());
  } else {
    throw ConfigError(fmt::format("accuracy: the model returns {}, labels are {}",
                                  tensor_text(output), tensor_text(target)),
                      {}, "there is one label for each row of scores");
  }
  return {called, right.to(torch::kInt64)};
}

Metric mean_of(const char* name, std::function<torch::Tensor(const torch::Tensor&)> of_error) {
  return {name,
          [name, of_error](const torch::Tensor& output, const torch::Tensor& target) {
            if (output.numel() != target.numel())
              throw ConfigError(fmt::format("{}: the model returns {}, the target is {}", name,
                                            tensor_text(output), tensor_text(target)));
            const auto error =
                output.to(torch::kFloat64) - target.reshape(output.sizes()).to(torch::kFloat64);
            return row_means(of_error(error));
          },
          {}};
}

/// Of the rows selected by `base`, the share that is of class `positive` on both sides.
template <typename Base>
Metric share_of(const char* name, std::int64_t positive, Base base) {
  return {name,
          [positive, base](const torch::Tensor& output, const torch::Tensor& target) {
            const auto [called, right] = classes(output, target);
            const auto both = torch::logical_and(called == positive, right == positive);
            return torch::stack({both, base(called, right) == positive}, 1);
          },
          [](std::span<const double> sums, double) { return sums[0] / sums[1]; }};
}

}  // namespace

Metric accuracy() {
  return {"accuracy",
          [](const torch::Tensor& output, const torch::Tensor& target) {
            const auto [called, right] = classes(output, target);
            return row_means((called == right).to(torch::kFloat64));
          },
          {}};
}

Metric top_k_accuracy(std::int64_t k) {
  if (k < 1) throw ConfigError(fmt::format("top_k_accuracy: k of {}", k), {}, "k is 1 or more");
  return {fmt::format("top_{}_accuracy", k),
          [k](const torch::Tensor& output, const torch::Tensor& target) {
            const auto best = std::get<1>(output.topk(std::min(k, output.size(1)), 1));
            const auto labels = target.reshape({-1, 1}).to(torch::kInt64);
            return (best == labels).any(1).to(torch::kFloat64);
          },
          {}};
}

Metric mean_squared_error_metric() {
  return mean_of("mean_squared_error", [](const torch::Tensor& error) { return error.square(); });
}
Metric mean_absolute_error_metric() {
  return mean_of("mean_absolute_error", [](const torch::Tensor& error) { return error.abs(); });
}
Metric precision(std::int64_t positive) {
  return share_of("precision", positive,
                  [](const torch::Tensor& called, const torch::Tensor&) { return called; });
}
Metric recall(std::int64_t positive) {
  return share_of("recall", positive,
                  [](const torch::Tensor&, const torch::Tensor& right) { return right; });
}

}  // namespace penstock::train
