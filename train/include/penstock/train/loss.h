#pragma once
// Losses return one value per sample. The trainer adds them up and divides once, by the number of
// samples of the whole step, so that uneven shares are weighted correctly.

#include <torch/torch.h>

#include <functional>
#include <string>

namespace penstock::train {

struct Loss {
  std::string name;
  /// One value per row of `output`.
  std::function<torch::Tensor(const torch::Tensor& output, const torch::Tensor& target)> per_sample;
};

/// For class numbers and scores of shape [rows, classes].
Loss cross_entropy(double label_smoothing = 0);
/// For targets of the output's shape; the mean over all but the first dimension.
Loss mean_squared_error();
Loss mean_absolute_error();
Loss huber(double delta = 1);
/// For targets in [0, 1] and scores before the sigmoid.
Loss binary_cross_entropy();

}  // namespace penstock::train
