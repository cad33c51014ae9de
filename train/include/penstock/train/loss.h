#pragma once
// Losses give one value per sample. The trainer adds them up and divides once, by the samples of
// the whole step, so that uneven shares weigh what they should.

#include <torch/torch.h>

#include <functional>
#include <string>

namespace penstock::train {

struct Loss {
  std::string name;
  /// One value per row of `output`.
  std::function<torch::Tensor(const torch::Tensor& output, const torch::Tensor& target)> per_sample;
};

/// Classes by number against scores of shape [rows, classes].
Loss cross_entropy(double label_smoothing = 0);
/// Targets of the output's shape; the mean over all but the first dimension.
Loss mean_squared_error();
Loss mean_absolute_error();
Loss huber(double delta = 1);
/// Targets in [0, 1] against scores before the sigmoid.
Loss binary_cross_entropy();

}  // namespace penstock::train
