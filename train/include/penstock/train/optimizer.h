#pragma once
// LibTorch's optimizers by name, and learning rates as functions of the update. A schedule has no
// state, so that a resumed run has the rate it would have had.

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace penstock::train {

/// Returns the learning rate of update number `iteration`, from 0.
using Schedule = std::function<double(std::uint64_t iteration)>;

struct OptimizerSpec {
  std::string name;
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)> make;
  double learning_rate = 0;
};

struct SgdOptions {
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
};
struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};
struct RmspropOptions {
  double alpha = 0.99;
  double momentum = 0;
  double epsilon = 1e-8;
  double weight_decay = 0;
};

/// Throw ConfigError for a rate that is not positive and finite.
OptimizerSpec sgd(double learning_rate, const SgdOptions& options = {});
OptimizerSpec adam(double learning_rate = 1e-3, const AdamOptions& options = {});
OptimizerSpec adamw(double learning_rate = 1e-3,
                    const AdamOptions& options = {.weight_decay = 0.01});
OptimizerSpec rmsprop(double learning_rate = 1e-3, const RmspropOptions& options = {});

Schedule constant_rate(double rate);
/// `rate`, multiplied by `factor` after every `every` updates.
Schedule step_decay(double rate, double factor, std::uint64_t every);
/// From `rate` along half a cosine to `last` after `updates`.
Schedule cosine_decay(double rate, std::uint64_t updates, double last = 0);
/// From 0 to `then`'s rate over the first `updates`, and `then` after that.
Schedule warm_up(std::uint64_t updates, Schedule then);

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);

/// The state of an optimizer by parameter name, such as "layer.weight/exp_avg". Supports SGD, Adam,
/// AdamW and RMSprop; throws ConfigError for any other.
using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;
NamedTensors optimizer_state(torch::optim::Optimizer& optimizer,
                             const std::vector<std::string>& parameter_names);
/// The reverse. Throws StateError naming what is missing or has a different shape.
void restore_optimizer(torch::optim::Optimizer& optimizer,
                       const std::vector<std::string>& parameter_names, const NamedTensors& state);

}  // namespace penstock::train
