#include <penstock/train/optimizer.h>

#include <fmt/format.h>
#include <penstock/error.h>

#include <cmath>
#include <map>
#include <numbers>

#include <penstock/train/tensors.h>

namespace penstock::train {
namespace {

double checked_rate(const char* name, double rate) {
  if (std::isfinite(rate) && rate > 0) return rate;
  throw ConfigError(fmt::format("{}: a learning rate of {}", name, rate), {},
                    "it is positive and finite");
}

template <typename Optimizer, typename Options>
OptimizerSpec made(const char* name, const Options& options) {
  return {name,
          [options](std::vector<torch::Tensor> parameters) {
            return std::make_unique<Optimizer>(std::move(parameters), options);
          },
          options.lr()};
}

/// Calls `visit(name, Tensor&)` and `visit(name, int64&)` for all state of one parameter.
template <typename Visit>
struct Remembered {
  torch::optim::Optimizer& optimizer;
  Visit visit;

  template <typename State>
  State& state(const torch::Tensor& parameter) {
    auto& slot = optimizer.state()[parameter.unsafeGetTensorImpl()];
    if (!slot) slot = std::make_unique<State>();
    return static_cast<State&>(*slot);
  }
  void operator()(const std::string& name, const torch::Tensor& parameter) {
    if (dynamic_cast<torch::optim::SGD*>(&optimizer) != nullptr) {
      auto& its = state<torch::optim::SGDParamState>(parameter);
      visit(name + "/momentum_buffer", its.momentum_buffer());
    } else if (dynamic_cast<torch::optim::Adam*>(&optimizer) != nullptr) {
      moments(name, state<torch::optim::AdamParamState>(parameter));
    } else if (dynamic_cast<torch::optim::AdamW*>(&optimizer) != nullptr) {
      moments(name, state<torch::optim::AdamWParamState>(parameter));
    } else if (dynamic_cast<torch::optim::RMSprop*>(&optimizer) != nullptr) {
      auto& its = state<torch::optim::RMSpropParamState>(parameter);
      visit(name + "/step", its.step());
      visit(name + "/square_avg", its.square_avg());
      visit(name + "/momentum_buffer", its.momentum_buffer());
      visit(name + "/grad_avg", its.grad_avg());
    } else {
      throw ConfigError("checkpoint: the state of this optimizer is not supported", {},
                        "use sgd, adam, adamw or rmsprop, or train without checkpoints");
    }
  }
  template <typename State>
  void moments(const std::string& name, State& its) {
    visit(name + "/step", its.step());
    visit(name + "/exp_avg", its.exp_avg());
    visit(name + "/exp_avg_sq", its.exp_avg_sq());
    visit(name + "/max_exp_avg_sq", its.max_exp_avg_sq());
  }
};
template <typename Visit>
Remembered(torch::optim::Optimizer&, Visit) -> Remembered<Visit>;

const std::vector<torch::Tensor>& parameters_of(torch::optim::Optimizer& optimizer) {
  return optimizer.param_groups().at(0).params();
}

/// Reads the state of the optimizer; what a file lacks never existed.
struct Restore {
  const std::map<std::string, torch::Tensor>& known;
  const torch::Tensor& parameter;
  void operator()(const std::string& name, torch::Tensor& value) const {
    const auto found = known.find(name);
    if (found == known.end()) {
      value = torch::Tensor();
      return;
    }
    if (found->second.sizes() != parameter.sizes())
      throw StateError(fmt::format("optimizer state {} is {}, the parameter {}", name,
                                   tensor_text(found->second), tensor_text(parameter)));
    value = found->second.to(parameter.device(), /*non_blocking=*/false, /*copy=*/true);
  }
  void operator()(const std::string& name, std::int64_t& value) const {
    const auto found = known.find(name);
    if (found == known.end())
      throw StateError(fmt::format("optimizer state {} is missing", name), {},
                       "resume with the optimizer that the checkpoint was saved with");
    value = found->second.item<std::int64_t>();
  }
};

}  // namespace

OptimizerSpec sgd(double learning_rate, const SgdOptions& options) {
  return made<torch::optim::SGD>("sgd", torch::optim::SGDOptions(checked_rate("sgd", learning_rate))
                                            .momentum(options.momentum)
                                            .weight_decay(options.weight_decay)
                                            .nesterov(options.nesterov));
}
OptimizerSpec adam(double learning_rate, const AdamOptions& options) {
  return made<torch::optim::Adam>("adam",
                                  torch::optim::AdamOptions(checked_rate("adam", learning_rate))
                                      .betas({options.beta1, options.beta2})
                                      .eps(options.epsilon)
                                      .weight_decay(options.weight_decay));
}
OptimizerSpec adamw(double learning_rate, const AdamOptions& options) {
  return made<torch::optim::AdamW>("adamw",
                                   torch::optim::AdamWOptions(checked_rate("adamw", learning_rate))
                                       .betas({options.beta1, options.beta2})
                                       .eps(options.epsilon)
                                       .weight_decay(options.weight_decay));
}
OptimizerSpec rmsprop(double learning_rate, const RmspropOptions& options) {
  return made<torch::optim::RMSprop>(
      "rmsprop", torch::optim::RMSpropOptions(checked_rate("rmsprop", learning_rate))
                     .alpha(options.alpha)
                     .momentum(options.momentum)
                     .eps(options.epsilon)
                     .weight_decay(options.weight_decay));
}

Schedule constant_rate(double rate) {
  return [rate](std::uint64_t) { return rate; };
}
Schedule step_decay(double rate, double factor, std::uint64_t every) {
  if (every == 0) throw ConfigError("step_decay: every 0 updates", {}, "say 1 or more");
  return [=](std::uint64_t iteration) {
    return rate * std::pow(factor, static_cast<double>(iteration / every));
  };
}
Schedule cosine_decay(double rate, std::uint64_t updates, double last) {
  if (updates == 0) throw ConfigError("cosine_decay: over 0 updates", {}, "say 1 or more");
  return [=](std::uint64_t iteration) {
    const double done =
        static_cast<double>(std::min(iteration, updates)) / static_cast<double>(updates);
    return last + (rate - last) * 0.5 * (1 + std::cos(std::numbers::pi * done));
  };
}
Schedule warm_up(std::uint64_t updates, Schedule then) {
  return [updates, then = std::move(then)](std::uint64_t iteration) {
    const double rate = then(iteration);
    if (iteration >= updates) return rate;
    return rate * static_cast<double>(iteration + 1) / static_cast<double>(updates);
  };
}

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

NamedTensors optimizer_state(torch::optim::Optimizer& optimizer,
                             const std::vector<std::string>& parameter_names) {
  NamedTensors state;
  struct Take {
    NamedTensors& into;
    void operator()(const std::string& name, torch::Tensor& value) const {
      if (value.defined()) into.emplace_back(name, value);
    }
    void operator()(const std::string& name, std::int64_t& value) const {
      into.emplace_back(name, torch::tensor(value, torch::kInt64));
    }
  };
  Remembered take{optimizer, Take{state}};
  const auto& parameters = parameters_of(optimizer);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (optimizer.state().count(parameters[i].unsafeGetTensorImpl()) > 0)
      take(parameter_names.at(i), parameters[i]);
  return state;
}

void restore_optimizer(torch::optim::Optimizer& optimizer,
                       const std::vector<std::string>& parameter_names, const NamedTensors& state) {
  const std::map<std::string, torch::Tensor> known(state.begin(), state.end());
  optimizer.state().clear();
  const auto& parameters = parameters_of(optimizer);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string& name = parameter_names.at(i);
    const auto first = known.lower_bound(name + "/");
    if (first == known.end() || !first->first.starts_with(name + "/")) continue;  // never updated
    Remembered{optimizer, Restore{known, parameters[i]}}(name, parameters[i]);
  }
}

}  // namespace penstock::train
