#pragma once
// Training whose weights must not depend on how many replicas and processes there are: for
// same_weights_test.cc in one process, and for workers.cc in several.

#include <cmath>
#include <stdexcept>

#include "nets.h"

namespace penstock::train {

struct Case {
  const char* name;
  std::int64_t samples;
  OptimizerSpec optimizer;
  torch::Dtype dtype;
  bool dropout;
  bool norm;
  double limit;
  Tail tail = Tail::short_;
};

inline CompileOptions compiled(const Case& with) {
  CompileOptions options;
  options.optimizer = with.optimizer;
  options.loss = mean_squared_error();
  options.metrics = {mean_absolute_error_metric()};
  options.sync_batch_norm = with.norm;
  return options;
}

inline Dataset data_of(const Case& with) {
  return points(with.samples, 5, with.dtype == torch::kFloat64 ? Dtype::f64 : Dtype::f32)
      .shuffle({.seed = 7})
      .batch(16);
}

struct Trained {
  torch::Tensor weights;
  Scores scores;
  std::uint64_t iterations = 0;
};

inline Trained fitted(const Case& with, Strategy& strategy) {
  Model model(small_net(with.dropout, with.norm, with.dtype), {.strategy = &strategy});
  model.compile(compiled(with));
  FitOptions options{.epochs = 2, .show = Show::nothing};
  options.loader.tail = with.tail;
  const History history = model.fit(data_of(with), options);
  model.mirrored().check_equal();
  return {weights(model.network()), model.evaluate(data_of(with)), history.iterations};
}

/// A loop written by hand has no batch norm (its statistics need fit), and was not asked to pad.
inline bool can_loop(const Case& with) {
  return !with.norm && with.tail == Tail::short_;
}
/// The same by such a loop.
inline Trained looped(const Case& with, Strategy& strategy) {
  const Network net = small_net(with.dropout, false, with.dtype);
  Mirrored copies(strategy, net, {.optimizer = with.optimizer});
  const Loss loss = mean_squared_error();
  Feed feed = strategy.distribute(data_of(with));
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const Step& step : feed) {
      const auto losses = strategy.run(
          [&](Replica& replica, const Batch& share) {
            const ShareScope scope(replica, share, {.iteration = copies.iterations()});
            const torch::Device device = torch_device(replica.device());
            const auto output = copies[replica].forward({tensor_of(share, "x", device)});
            const auto sum = loss.per_sample(output, tensor_of(share, "y", device)).sum();
            sum.backward();
            return Counted<double>{sum.item<double>(), share.valid_count()};
          },
          step);
      if (!std::isfinite(strategy.reduce(Reduce::mean, losses))) throw std::runtime_error("NaN");
      copies.update(step);
    }
  return {weights(net), {}, copies.iterations()};
}

/// Uneven data, every optimizer, and what draws or counts by itself.
inline std::vector<Case> cases() {
  const SgdOptions momentum{.momentum = 0.9};
  return {
      Case{"sgd", 103, sgd(0.05), torch::kFloat64, false, false, 1e-12},
      Case{"sgd_tail_of_one", 97, sgd(0.05, momentum), torch::kFloat64, false, false, 1e-12},
      Case{"sgd_fewer_than_replicas", 5, sgd(0.05), torch::kFloat64, false, false, 1e-12},
      Case{"adam", 103, adam(1e-2), torch::kFloat64, false, false, 1e-9},
      Case{"adamw_tail_of_one", 97, adamw(1e-2), torch::kFloat64, false, false, 1e-9},
      Case{"rmsprop", 103, rmsprop(1e-3), torch::kFloat64, false, false, 1e-9},
      Case{"dropout", 103, sgd(0.05), torch::kFloat64, true, false, 1e-12},
      Case{"dropout_adam", 97, adam(1e-2), torch::kFloat64, true, false, 1e-9},
      Case{"sync_batch_norm", 103, sgd(0.05), torch::kFloat64, false, true, 1e-12},
      Case{"sync_batch_norm_tail_of_one", 97, sgd(0.05), torch::kFloat64, false, true, 1e-12},
      Case{"dropout_and_norm_adam", 103, adam(1e-2), torch::kFloat64, true, true, 1e-9},
      Case{"padded", 103, sgd(0.05), torch::kFloat64, false, false, 1e-12, Tail::pad},
      Case{"padded_norm", 97, sgd(0.05), torch::kFloat64, true, true, 1e-12, Tail::pad},
      Case{"float_sgd", 103, sgd(0.05), torch::kFloat32, true, true, 1e-5},
      Case{"float_adam", 103, adam(1e-2), torch::kFloat32, false, false, 1e-3},
  };
}

}  // namespace penstock::train
