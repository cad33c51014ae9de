// Rows of docs/scenarios.md that are programs with fit: as their authors wrote them, on the
// trainer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temp_folder_for_tests.h"
#include "nets.h"

namespace penstock::train {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// One weight per sample that counts how much that sample weighed: a layer over one-hot samples,
/// whose loss is the output itself. SGD with rate 1 moves weight i by the share of sample i.
Dataset one_hot(std::int64_t count) {
  return Dataset::range(count).map([count](const Sample& in) {
    std::vector<double> x(static_cast<std::size_t>(count));
    x[static_cast<std::size_t>(in.tensor().item<std::int64_t>())] = 1;
    return Sample::dict({{"x", Tensor::of(x)}, {"y", Tensor::scalar(0.0)}});
  });
}

Loss output_itself() {
  return {"output",
          [](const torch::Tensor& output, const torch::Tensor&) { return output.view(-1); }};
}

/// By how much of its right weight each sample counted.
std::vector<double> shares(std::int64_t count, std::int64_t batch, std::size_t replicas) {
  MirroredStrategy strategy(cpus(replicas));
  torch::nn::Sequential net(torch::nn::Linear(torch::nn::LinearOptions(count, 1).bias(false)));
  net->to(torch::kFloat64);
  {
    const torch::NoGradGuard no_grad;
    net->parameters()[0].zero_();
  }
  Model model(net, {.strategy = &strategy});
  model.compile({.optimizer = sgd(1), .loss = output_itself()});
  (void)model.fit(one_hot(count).batch(batch), {.show = Show::nothing});
  std::vector<double> found;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t in_step = std::min(batch, count - i / batch * batch);
    found.push_back(-net->parameters()[0][0][i].item<double>() * static_cast<double>(in_step));
  }
  return found;
}

MATCHER(IsOne, "is 1.000") {
  return std::abs(arg - 1) < 1e-12;
}

TEST(FitScenario, b_103_by_16) {
  for (const std::size_t replicas : {1U, 2U, 3U, 4U, 8U})
    EXPECT_THAT(shares(103, 16, replicas), Each(IsOne())) << replicas;
}

TEST(FitScenario, b_tail_of_one) {
  EXPECT_THAT(shares(97, 16, 4), Each(IsOne()));
}

/// Every sample has loss 1, whatever the weights.
CompileOptions loss_of_one(OptimizerSpec optimizer) {
  CompileOptions options;
  options.optimizer = std::move(optimizer);
  options.loss = {"one", [](const torch::Tensor& output, const torch::Tensor&) {
                    return 1 + 0 * output.view(-1);
                  }};
  return options;
}

TEST(FitScenario, a001_finite_generator) {
  const auto generator = Dataset::from_generator([] {
    return [left = 7 * 16]() mutable -> std::optional<Sample> {
      if (left-- == 0) return std::nullopt;
      return Sample::dict(
          {{"x", Tensor::of(std::vector<double>(5, 0.5))}, {"y", Tensor::scalar(1.0)}});
    };
  });
  MirroredStrategy strategy(cpus(2));
  Model model(small_net(), {.strategy = &strategy});
  model.compile(loss_of_one(sgd(0.1)));
  const History history = model.fit(generator.batch(16), {.epochs = 3, .show = Show::nothing});
  ASSERT_EQ(history.epochs.size(), 3U);
  for (const EpochLog& log : history.epochs) {
    EXPECT_EQ(log.steps, 7U);
    EXPECT_EQ(log.train.loss, 1.0);
  }
}

TEST(FitScenario, b_ghost_step) {
  const auto all = [](const Sample&) { return true; };
  for (const std::size_t replicas : {1U, 2U})
    for (const OptimizerSpec& optimizer : {adam(1e-2), adamw(1e-2)}) {
      const auto trained = [&](const Dataset& data) {
        MirroredStrategy strategy(cpus(replicas));
        Model model(small_net(), {.strategy = &strategy});
        model.compile({.optimizer = optimizer, .loss = mean_squared_error()});
        const History history = model.fit(data, {.epochs = 3, .show = Show::nothing});
        EXPECT_EQ(history.iterations, 21U);
        model.compile(loss_of_one(optimizer));
        EXPECT_EQ(model.evaluate(data).loss, 1.0);
        return weights(model.network());
      };
      EXPECT_TRUE(
          torch::equal(trained(points(112).batch(16)), trained(points(112).filter(all).batch(16))));
    }
}

TEST(FitScenario, b_short_generator) {
  const auto all = [](const Sample&) { return true; };
  const Dataset stream = points(112).filter(all).batch(16);
  Model model(small_net());
  model.compile({.optimizer = sgd(0.01), .loss = mean_squared_error()});
  FitOptions options{.epochs = 3, .show = Show::nothing};
  options.steps_per_epoch = 10;
  EXPECT_THAT([&] { (void)model.fit(stream, options); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("10"), HasSubstr("7"))));
  options.short_epoch = true;
  for (const EpochLog& log : model.fit(stream, options).epochs) EXPECT_EQ(log.steps, 7U);
  options.short_epoch = false;
  const History repeated = model.fit(points(112).filter(all).repeat().batch(16), options);
  for (const EpochLog& log : repeated.epochs) EXPECT_EQ(log.steps, 10U);
}

TEST(FitScenario, b_steps_below_pass) {
  Model model(small_net());
  model.compile({.optimizer = sgd(0.01), .loss = mean_squared_error()});
  FitOptions options{.epochs = 3, .show = Show::nothing};
  options.steps_per_epoch = 5;
  for (const bool restart : {false, true}) {
    options.restart = restart;
    for (const EpochLog& log : model.fit(points(112).batch(16), options).epochs)
      EXPECT_EQ(log.steps, 5U);
  }
}

TEST(FitScenario, b_validation) {
  MirroredStrategy strategy(cpus(2));
  Model model(small_net(), {.strategy = &strategy});
  model.compile(loss_of_one(sgd(0.1)));
  FitOptions options{.epochs = 4, .show = Show::nothing};
  options.validation = points(37).batch(8);
  for (const EpochLog& log : model.fit(points(64).batch(16), options).epochs) {
    EXPECT_EQ(log.validation->samples, 37U);
    EXPECT_EQ(log.validation->loss, 1.0);
  }
}

TEST(FitScenario, d_resume_fit) {
  // 4 epochs of 5 steps of 4; stopped after step 3 of the third, and resumed: 80 visits for 80.
  const TempFolder folder;
  std::vector<int> visits(20);
  for (const bool first : {true, false}) {
    Model model(small_net());
    model.compile({.optimizer = adam(1e-3), .loss = mean_squared_error()});
    FitOptions options{.epochs = 4, .show = Show::nothing};
    options.resume = folder.path("c");
    options.callbacks = {checkpoints(folder.path("c"), {.every_steps = 1}),
                         hooks({.on_step_end = [&](Training& training, const Scores&) {
                           if (first && training.iteration() == 13) training.stop("killed");
                         }})};
    // The loss sees which samples a step trains on; what was only read ahead does not count.
    CompileOptions counting{.optimizer = adam(1e-3), .loss = mean_squared_error()};
    counting.loss.per_sample = [&visits](const torch::Tensor& output, const torch::Tensor& target) {
      for (std::int64_t row = 0; row < target.size(0); ++row)
        ++visits[static_cast<std::size_t>(target[row].item<double>())];
      return (output.view(-1) - target).square();
    };
    model.compile(counting);
    const Dataset numbered =
        Dataset::range(20)
            .map([](const Sample& in) {
              const auto number = static_cast<double>(in.tensor().item<std::int64_t>());
              return Sample::dict({{"x", Tensor::of(std::vector<double>(5, number / 20))},
                                   {"y", Tensor::scalar(number)}});
            })
            .shuffle({.seed = 3});
    (void)model.fit(numbered.batch(4), options);
  }
  EXPECT_THAT(visits, Each(4));
}

}  // namespace
}  // namespace penstock::train
