#pragma once
// Metrics stay sums over samples until the end and are divided once: so they are exact for uneven
// replicas and any number of processes, and not means of means.

#include <torch/torch.h>

#include <functional>
#include <span>
#include <string>

namespace penstock::train {

struct Metric {
  std::string name;
  /// Statistics of each row: [rows], or [rows, k] if the value needs k sums.
  std::function<torch::Tensor(const torch::Tensor& output, const torch::Tensor& target)> per_sample;
  /// Computes the value from the k sums and the number of samples; by default the mean of the
  /// first.
  std::function<double(std::span<const double> sums, double count)> value = {};
};

/// For class numbers, and scores of [rows, classes], or of [rows] or [rows, 1] before a sigmoid.
Metric accuracy();
Metric top_k_accuracy(std::int64_t k);
Metric mean_squared_error_metric();
Metric mean_absolute_error_metric();
/// Of class `positive`; NaN if no sample was predicted or labeled so.
Metric precision(std::int64_t positive = 1);
Metric recall(std::int64_t positive = 1);

}  // namespace penstock::train
