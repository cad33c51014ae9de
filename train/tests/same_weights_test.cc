// Weights, losses and metrics do not depend on how many replicas there are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nets.h"

namespace penstock::train {
namespace {

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

CompileOptions compiled(const Case& with) {
  CompileOptions options;
  options.optimizer = with.optimizer;
  options.loss = mean_squared_error();
  options.metrics = {mean_absolute_error_metric()};
  options.sync_batch_norm = with.norm;
  return options;
}

Dataset data_of(const Case& with) {
  return points(with.samples, 5, with.dtype == torch::kFloat64 ? Dtype::f64 : Dtype::f32)
      .shuffle({.seed = 7})
      .batch(16);
}

struct Trained {
  torch::Tensor weights;
  Scores scores;
  std::uint64_t iterations = 0;
};

Trained fitted(const Case& with, std::size_t replicas) {
  MirroredStrategy strategy(cpus(replicas));
  Model model(small_net(with.dropout, with.norm, with.dtype), {.strategy = &strategy});
  model.compile(compiled(with));
  FitOptions options{.epochs = 2, .show = Show::nothing};
  options.loader.tail = with.tail;
  const History history = model.fit(data_of(with), options);
  model.mirrored().check_equal();
  return {weights(model.network()), model.evaluate(data_of(with)), history.iterations};
}

/// The same by a loop written by hand.
Trained looped(const Case& with, std::size_t replicas) {
  MirroredStrategy strategy(cpus(replicas));
  const Network net = small_net(with.dropout, false, with.dtype);
  Mirrored copies(strategy, net, {.optimizer = with.optimizer});
  const Loss loss = mean_squared_error();
  Feed feed = strategy.distribute(data_of(with));
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const Step& step : feed) {
      const auto losses = strategy.run(
          [&](Replica& replica, const Batch& share) {
            const ShareScope scope(replica, share, {.iteration = copies.iterations()});
            const auto output = copies[replica].forward({tensor_of(share, "x")});
            const auto sum = loss.per_sample(output, tensor_of(share, "y")).sum();
            sum.backward();
            return Counted<double>{sum.item<double>(), share.valid_count()};
          },
          step);
      EXPECT_TRUE(std::isfinite(strategy.reduce(Reduce::mean, losses)));
      copies.update(step);
    }
  return {weights(net), {}, copies.iterations()};
}

class SameWeights : public ::testing::TestWithParam<Case> {};

TEST_P(SameWeights, FitGivesThemForEveryNumberOfReplicas) {
  const Trained one = fitted(GetParam(), 1);
  for (const std::size_t replicas : {2U, 3U, 4U, 8U}) {
    const Trained several = fitted(GetParam(), replicas);
    EXPECT_LE(difference(one.weights, several.weights), GetParam().limit) << replicas;
    EXPECT_EQ(one.iterations, several.iterations);
    EXPECT_NEAR(one.scores.loss, several.scores.loss, GetParam().limit * 10) << replicas;
    EXPECT_NEAR(one.scores.metrics[0].second, several.scores.metrics[0].second,
                GetParam().limit * 10);
    EXPECT_EQ(several.scores.samples, static_cast<std::uint64_t>(GetParam().samples));
  }
}

TEST_P(SameWeights, ALoopByHandGivesThemToo) {
  if (GetParam().norm || GetParam().tail != Tail::short_) return;  // statistics need fit
  const Trained one = fitted(GetParam(), 1);
  for (const std::size_t replicas : {1U, 2U, 3U, 4U, 8U}) {
    const Trained several = looped(GetParam(), replicas);
    EXPECT_LE(difference(one.weights, several.weights), GetParam().limit) << replicas;
    EXPECT_EQ(one.iterations, several.iterations);
  }
}

const SgdOptions kMomentum{.momentum = 0.9};
INSTANTIATE_TEST_SUITE_P(
    Uneven, SameWeights,
    ::testing::Values(
        Case{"sgd", 103, sgd(0.05), torch::kFloat64, false, false, 1e-12},
        Case{"sgd_tail_of_one", 97, sgd(0.05, kMomentum), torch::kFloat64, false, false, 1e-12},
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
        Case{"float_adam", 103, adam(1e-2), torch::kFloat32, false, false, 1e-3}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(SameWeightsTest, AStreamOfUnknownLengthEndsAsIndexedDataDoes) {
  const auto trained = [](const Dataset& data, std::size_t replicas) {
    MirroredStrategy strategy(cpus(replicas));
    Model model(small_net(), {.strategy = &strategy});
    model.compile({.optimizer = adamw(1e-2), .loss = mean_squared_error()});
    const History history = model.fit(data, {.epochs = 3, .show = Show::nothing});
    EXPECT_EQ(history.epochs.size(), 3U);
    EXPECT_EQ(history.epochs.back().steps, 7U);
    return std::pair(weights(model.network()), history.iterations);
  };
  const auto all = [](const Sample&) { return true; };
  for (const std::size_t replicas : {1U, 2U}) {
    const auto [indexed, count] = trained(points(103).batch(16), replicas);
    const auto [streamed, stream_count] = trained(points(103).filter(all).batch(16), replicas);
    EXPECT_EQ(count, 21U);
    EXPECT_EQ(stream_count, 21U);
    EXPECT_TRUE(torch::equal(indexed, streamed));
  }
}

TEST(SameWeightsTest, AccumulatedStepsCountTheirSamplesOnce) {
  // 103 samples in steps of 8, two for each update, are updates of 16, and of 7 at the end.
  const auto trained = [](std::int64_t batch, std::uint64_t accumulate, std::size_t replicas) {
    MirroredStrategy strategy(cpus(replicas));
    Model model(small_net(), {.strategy = &strategy});
    CompileOptions options{.optimizer = sgd(0.05), .loss = mean_squared_error()};
    options.accumulate = accumulate;
    options.clip_norm = 0.5;
    options.regulariser = [](torch::nn::Module& module) {
      torch::Tensor sum = torch::zeros({}, torch::kFloat64);
      for (const auto& value : module.parameters()) sum = sum + value.square().sum();
      return 1e-3 * sum;
    };
    model.compile(options);
    const History history =
        model.fit(points(103).batch(batch), {.epochs = 2, .show = Show::nothing});
    EXPECT_EQ(history.iterations, 14U);
    return std::pair(weights(model.network()), history.epochs.back().train.loss);
  };
  const auto [whole, loss] = trained(16, 1, 1);
  for (const std::size_t replicas : {1U, 3U}) {
    const auto [parts, parts_loss] = trained(8, 2, replicas);
    EXPECT_LE(difference(whole, parts), 1e-12);
    const auto [uncut, uncut_loss] = trained(16, 1, replicas);
    EXPECT_LE(difference(whole, uncut), 1e-12);
    EXPECT_NEAR(loss, uncut_loss, 1e-12);
  }
}

}  // namespace
}  // namespace penstock::train
