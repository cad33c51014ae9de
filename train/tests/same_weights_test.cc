// Weights, losses and metrics do not depend on how many replicas there are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "same_weights.h"

namespace penstock::train {
namespace {

class SameWeights : public ::testing::TestWithParam<Case> {
 protected:
  static Trained fitted(std::size_t replicas) {
    MirroredStrategy strategy(cpus(replicas));
    return train::fitted(GetParam(), strategy);
  }
};

TEST_P(SameWeights, FitGivesThemForEveryNumberOfReplicas) {
  const Trained one = fitted(1);
  for (const std::size_t replicas : {2U, 3U, 4U, 8U}) {
    const Trained several = fitted(replicas);
    EXPECT_LE(difference(one.weights, several.weights), GetParam().limit) << replicas;
    EXPECT_EQ(one.iterations, several.iterations);
    EXPECT_NEAR(one.scores.loss, several.scores.loss, GetParam().limit * 10) << replicas;
    EXPECT_NEAR(one.scores.metrics[0].second, several.scores.metrics[0].second,
                GetParam().limit * 10);
    EXPECT_EQ(several.scores.samples, static_cast<std::uint64_t>(GetParam().samples));
  }
}

TEST_P(SameWeights, ALoopByHandGivesThemToo) {
  if (!can_loop(GetParam())) return;
  const Trained one = fitted(1);
  for (const std::size_t replicas : {1U, 2U, 3U, 4U, 8U}) {
    MirroredStrategy strategy(cpus(replicas));
    const Trained several = looped(GetParam(), strategy);
    EXPECT_LE(difference(one.weights, several.weights), GetParam().limit) << replicas;
    EXPECT_EQ(one.iterations, several.iterations);
  }
}

INSTANTIATE_TEST_SUITE_P(Uneven, SameWeights, ::testing::ValuesIn(cases()),
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
    options.regularizer = [](torch::nn::Module& module) {
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
