// Uneven data, weights, and the end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/scenarios/article.h"

namespace penstock::scenario {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Every sample moves the model as one device would, in every loop and for every R.
void expect_right_weights(std::int64_t samples, std::int64_t batch,
                          std::initializer_list<Loop> loops) {
  for (const std::size_t replicas : kReplicas)
    for (const Loop loop : loops)
      EXPECT_THAT(influences(Dataset::range(samples).batch(batch), replicas, loop,
                             static_cast<std::size_t>(samples)),
                  Each(DoubleNear(1.0, 1e-12)))
          << "R=" << replicas << " loop " << static_cast<int>(loop);
}

TEST(Scenario, b_103_by_16) {
  const Weights right = by_hand(steps_of(103, 16));
  for (const std::size_t replicas : kReplicas) {
    const Fit trained = fit(Dataset::range(103).batch(16), replicas);
    EXPECT_EQ(trained.steps.front(), 7U);
    EXPECT_EQ(trained.ids.front(), numbers(0, 103));
    expect_weights(trained.weights, right, "R=" + std::to_string(replicas));
  }
  expect_right_weights(103, 16, {Loop::mean, Loop::global_count, Loop::averaged});
}

TEST(Scenario, b_tail_of_one) {
  expect_right_weights(97, 16, {Loop::mean, Loop::averaged});
  expect_weights(fit(Dataset::range(97).batch(16), 4).weights, by_hand(steps_of(97, 16)), "fit");
}

TEST(Scenario, b_custom_mean) {
  // Every sample has a loss of 1: any other result is a wrong weight, and that of an empty replica
  // is NaN.
  for (const std::size_t replicas : kReplicas) {
    MirroredStrategy strategy(devices(replicas));
    Feed feed = strategy.distribute(Dataset::range(97).batch(16));
    while (auto step = feed.next()) {
      const auto mean = strategy.run([](Replica&, const Batch&) { return 1.0; }, *step);
      const auto counted = strategy.run(
          [](Replica&, const Batch& share) {
            return Counted<double>{static_cast<double>(share.rows()), share.valid_count()};
          },
          *step);
      const auto each = strategy.run(
          [](Replica&, const Batch& share) { return std::vector<float>(share.rows(), 1.0F); },
          *step);
      EXPECT_EQ(strategy.reduce(Reduce::mean, mean), 1.0);
      EXPECT_EQ(strategy.reduce(Reduce::mean, counted), 1.0);
      EXPECT_EQ(strategy.reduce(Reduce::mean, each, 0), 1.0F);
      EXPECT_EQ(strategy.reduce(Reduce::sum, each, 0), static_cast<float>(step->valid_count()));
      EXPECT_EQ(strategy.gather(each).size(), step->valid_count());
    }
  }
  expect_right_weights(97, 16, {Loop::mean});
}

TEST(Scenario, b_custom_global) {
  expect_right_weights(103, 16, {Loop::global_count});
  expect_right_weights(97, 16, {Loop::global_count});
}

TEST(Scenario, b_10_batches_4_replicas) {
  MirroredStrategy strategy(devices(4));
  for (const Dataset& source : {Dataset::range(40), generator_of(40)}) {
    // Ten batches of four, each for one replica.
    Feed feed = strategy.distribute_from_function([&](const InputContext& context) {
      return source.batch(static_cast<std::int64_t>(context.per_replica_batch(16)));
    });
    std::vector<std::vector<std::size_t>> rows;
    std::vector<std::int64_t> ids;
    while (auto step = feed.next()) {
      rows.push_back(rows_of(*step));
      for (const std::int64_t id : ids_of(*step)) ids.push_back(id);
      const auto came = strategy.run(
          [](Replica& replica, const Batch&) { return replica.all_reduce(Reduce::sum, 1.0); },
          *step);
      for (std::size_t r = 0; r < 4; ++r) EXPECT_EQ(came[r], 4.0) << "all replicas, or none";
    }
    EXPECT_THAT(rows, ElementsAre(ElementsAre(4, 4, 4, 4), ElementsAre(4, 4, 4, 4),
                                  ElementsAre(2, 2, 2, 2)));
    EXPECT_EQ(ids, numbers(0, 40));
  }
}

TEST(Scenario, b_cut_rule) {
  MirroredStrategy strategy(devices(4));
  const auto shares_of = [&](const Dataset& dataset) {
    Feed feed = strategy.distribute(dataset);
    const auto step = feed.next();
    return step ? rows_of(*step) : std::vector<std::size_t>();
  };
  // One rule for arrays, functions and streams.
  const auto sources = [](std::int64_t count) {
    return std::vector<Dataset>{
        Dataset::range(count), Dataset::from_tensor_slices(Tensor::of(numbers(0, count))),
        Dataset::from_index(static_cast<std::uint64_t>(count), [](std::uint64_t i) { return i; }),
        generator_of(count)};
  };
  for (const Dataset& nine : sources(9))
    EXPECT_THAT(shares_of(nine.batch(9)), ElementsAre(3, 2, 2, 2));
  for (const Dataset& ten : sources(10))
    EXPECT_THAT(shares_of(ten.batch(10)), ElementsAre(3, 3, 2, 2));
  for (const Dataset& tail : sources(6))
    EXPECT_THAT(shares_of(tail.batch(10)), ElementsAre(2, 2, 1, 1));
  for (const Dataset& one : sources(1))
    EXPECT_THAT(shares_of(one.batch(10)), ElementsAre(1, 0, 0, 0));
}

TEST(Scenario, b_drop_remainder) {
  const Dataset dropped =
      Dataset::range(103).shuffle({.seed = 1}).batch(16, {.drop_remainder = true});
  EXPECT_THAT(Plan(dropped).explain(), HasSubstr("7 samples are dropped each time through"));
  const Fit trained = fit(dropped, 3, {.epochs = 3});
  EXPECT_THAT(trained.steps, ElementsAre(6, 6, 6));
  std::set<std::set<std::int64_t>> lost;
  for (const auto& ids : trained.ids) {
    std::set<std::int64_t> missing;
    for (const std::int64_t id : numbers(0, 103)) missing.insert(id);
    for (const std::int64_t id : ids)
      EXPECT_EQ(missing.erase(id), 1U) << id << " was delivered twice";
    EXPECT_EQ(missing.size(), 7U);
    lost.insert(missing);
  }
  EXPECT_EQ(lost.size(), 3U) << "another seven each time";
  const Fit stream = fit(generator_of(103).batch(16, {.drop_remainder = true}), 3, {.epochs = 2});
  EXPECT_THAT(stream.ids, Each(numbers(0, 96)));
}

TEST(Scenario, b_ghost_step) {
  for (const bool adamw : {false, true})
    for (const std::size_t replicas : kReplicas) {
      const FitOptions options{.epochs = 3, .adamw = adamw};
      const Fit stream = fit(generator_of(28).batch(4), replicas, options);
      const Fit known = fit(Dataset::range(28).batch(4), replicas, options);
      EXPECT_THAT(stream.steps, ElementsAre(7, 7, 7));
      EXPECT_EQ(stream.iterations, 21U);
      EXPECT_THAT(stream.losses, Each(1.0));
      EXPECT_EQ(stream.weights, known.weights) << "to the last bit, R=" << replicas;
    }
}

TEST(Scenario, b_short_generator) {
  MirroredStrategy strategy(devices(2));
  const Dataset seven = generator_of(28).batch(4);
  Feed ends = strategy.distribute(seven, {.steps_per_epoch = 10});
  for (int step = 0; step < 7; ++step) ASSERT_TRUE(ends.next());
  EXPECT_THAT(
      [&] { (void)ends.next(); },
      ThrowsMessage<ConfigError>(
          AllOf(HasSubstr("7 steps"), HasSubstr("steps_per_epoch is 10"), HasSubstr("repeat()"))));
  FitOptions options{.epochs = 3};
  options.distribute.steps_per_epoch = 10;
  EXPECT_THAT(fit(seven.repeat(), 2, options).steps, ElementsAre(10, 10, 10));
  options.distribute.short_epoch = true;
  EXPECT_THAT(fit(seven, 2, options).steps, ElementsAre(7, 7, 7));
}

TEST(Scenario, b_steps_below_pass) {
  FitOptions options{.epochs = 3};
  options.distribute.steps_per_epoch = 5;
  for (const Dataset& seven : {Dataset::range(7).batch(1), generator_of(7).batch(1)}) {
    options.distribute.restart = false;
    EXPECT_THAT(fit(seven, 2, options).ids,
                ElementsAre(ElementsAre(0, 1, 2, 3, 4), ElementsAre(5, 6, 0, 1, 2),
                            ElementsAre(3, 4, 5, 6, 0)));
    options.distribute.restart = true;
    EXPECT_THAT(fit(seven, 2, options).ids, Each(ElementsAre(0, 1, 2, 3, 4)));
  }
}

TEST(Scenario, b_peek) {
  // A generator that is started once yields twelve batches, and none is pulled in vain.
  int started = 0;
  const Dataset once = Dataset::from_generator([&started] {
    ++started;
    return [next = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
      if (next == 24) return std::nullopt;
      return next++;
    };
  });
  FitOptions options{.epochs = 3};
  options.distribute.steps_per_epoch = 4;
  const Fit trained = fit(once.batch(2), 2, options);
  EXPECT_THAT(trained.ids, ElementsAre(numbers(0, 8), numbers(8, 16), numbers(16, 24)));
  EXPECT_EQ(started, 1);
}

TEST(Scenario, b_validation) {
  MirroredStrategy strategy(devices(4));
  for (const Dataset& data : {Dataset::range(23).batch(5), generator_of(23).batch(5)}) {
    Feed validation = strategy.distribute(data, {.steps_per_epoch = 10, .short_epoch = true});
    FitOptions options{.epochs = 5};
    options.before_epoch = [&](Feed&) {
      double sum = 0;
      double count = 0;
      while (auto step = validation.next()) {
        const auto ids = strategy.run(
            [](Replica&, const Batch& share) {
              const auto values = share.values<std::int64_t>();
              return std::vector<double>(values.begin(), values.end());
            },
            *step);
        sum += strategy.reduce(Reduce::sum, ids, 0);
        count += static_cast<double>(strategy.gather(ids).size());
      }
      EXPECT_EQ(count, 23) << "a whole pass each time";
      EXPECT_EQ(sum / count, 11.0) << "of every sample once";
    };
    EXPECT_THAT(fit(Dataset::range(10).batch(4), 2, options).steps, Each(3U));
  }
}

}  // namespace
}  // namespace penstock::scenario
