// The programs of articles 000, 001 and 002.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "base/thread.h"
#include "tests/scenarios/article.h"

namespace penstock::scenario {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

TEST(Scenario, a000_zero_padding) {
  // No padding is needed: 14 samples by 4 over 2 replicas.
  const Dataset plain = Dataset::range(14).batch(4);
  const Weights right = by_hand(steps_of(14, 4));
  expect_weights(fit(plain, 2).weights, right, "without padding");

  // The policy pads: the same shape in every step, and padding has weight zero.
  const Dataset padded = Dataset::range(14).batch(4, {.tail = Tail::pad});
  MirroredStrategy strategy(devices(2));
  Feed feed = strategy.distribute(padded);
  EXPECT_THAT(feed.plan().explain(), HasSubstr("tail pad: 2 of 16 rows are empty"));
  while (auto step = feed.next()) {
    EXPECT_THAT(rows_of(*step), ElementsAre(2, 2));
    double loss = 0;
    for (const Batch& share : step->shares())
      for (std::size_t row = 0; row < 2; ++row) {
        if (share.valid()[row] == 0) {
          EXPECT_EQ(share.weight()[row], 0);
        }
        loss += share.weight()[row] * share.loss_scale() / 4;
      }
    EXPECT_EQ(loss, 1.0);
  }
  for (const std::size_t replicas : kReplicas)
    for (const Dataset& source : {Dataset::range(14), generator_of(14)}) {
      const Fit trained = fit(source.batch(4, {.tail = Tail::pad}), replicas);
      EXPECT_EQ(trained.ids.front(), numbers(0, 14));
      EXPECT_THAT(trained.losses, Each(1.0));
      expect_weights(trained.weights, right, "padded by the policy");
    }

  // Zeros that the user adds are the user's samples.
  const Tensor zeros = Tensor::of(std::vector<std::int64_t>(4));
  const Fit own =
      fit(Dataset::range(14).concatenate(Dataset::from_tensor_slices(zeros)).batch(4), 2);
  EXPECT_EQ(own.ids.front().size(), 18U);
}

/// Seven batches of three, as a generator of batches yields them.
Dataset generator_of_batches() {
  return Dataset::from_generator([] {
    return [batch = std::int64_t{0}]() mutable -> std::optional<Sample> {
      if (batch == 7) return std::nullopt;
      const auto ids = numbers(3 * batch, 3 * batch + 3);
      ++batch;
      const std::vector<float> x(6);
      return Sample::dict({{"id", Tensor::of(ids)}, {"x", Tensor::of(std::span(x), {3, 2})}});
    };
  });
}

TEST(Scenario, a000_double_batch) {
  const Weights right = by_hand(steps_of(21, 3));
  for (const std::size_t replicas : kReplicas) {
    const Told told;
    const Fit again = fit(generator_of_batches().batch(1), replicas);
    EXPECT_THAT(told.texts, ElementsAre(AllOf(HasSubstr("looks like a batch of 3 rows already"),
                                              HasSubstr("unbatch() before batch()"))));
    EXPECT_EQ(again.steps.front(), 7U);
    expect_weights(again.weights, right, "batched again, R=" + std::to_string(replicas));
    // The remedy of the warning.
    const Fit rows = fit(generator_of_batches().unbatch().batch(3), replicas);
    EXPECT_EQ(rows.ids.front(), numbers(0, 21));
    expect_weights(rows.weights, right, "unbatched, R=" + std::to_string(replicas));
    EXPECT_EQ(told.texts.size(), 1U);
  }
  // A Sequence is known to contain batches.
  class Batches final : public Sequence {
    [[nodiscard]] std::uint64_t size() const override { return 7; }
    Sample get(std::uint64_t) override { return Tensor::of(std::vector<double>(3)); }
  };
  EXPECT_THROW((void)Dataset::from_sequence(std::make_shared<Batches>()).batch(1), ConfigError);
}

TEST(Scenario, a000_scope) {
  const Told told;
  MirroredStrategy two(devices(2));
  MirroredStrategy three(devices(3));
  // The user's exception is unchanged, even if scopes are out of order.
  std::optional<Scope> escaped;
  EXPECT_THAT(
      [&] {
        const Scope outer = two.scope();
        escaped.emplace(three.scope());
        throw std::runtime_error("REAL problem: file missing");
      },
      ThrowsMessage<std::runtime_error>("REAL problem: file missing"));
  EXPECT_THAT(told.texts,
              ElementsAre(AllOf(HasSubstr("MirroredStrategy of 2 replicas: left out of order"),
                                HasSubstr("MirroredStrategy of 3 replicas was entered inside it"),
                                HasSubstr("leave the inner one first"))));
  EXPECT_EQ(Strategy::current(), &three);
  escaped.reset();
  EXPECT_EQ(Strategy::current(), nullptr);
  // Leaving in another thread is a separate error, and the scope stays open.
  Scope scope = two.scope();
  Thread other("other", [&] {
    EXPECT_THAT([&] { scope.leave(); },
                ThrowsMessage<ConfigError>(HasSubstr("left in another thread")));
  });
  other.join();
  EXPECT_EQ(Strategy::current(), &two);
  scope.leave();
  EXPECT_EQ(Strategy::current(), nullptr);
}

TEST(Scenario, a001_batch_100_by_16) {
  const Weights right = by_hand(steps_of(100, 16));
  for (const std::size_t replicas : kReplicas) {
    const Fit trained = fit(Dataset::range(100).batch(16), replicas);
    EXPECT_EQ(trained.steps.front(), 7U);
    EXPECT_EQ(trained.ids.front(), numbers(0, 100));
    expect_weights(trained.weights, right, "R=" + std::to_string(replicas));
  }
}

TEST(Scenario, a001_finite_generator) {
  const Told told;
  const Fit trained = fit(generator_of(28).batch(4), 2, {.epochs = 3});
  EXPECT_THAT(trained.steps, ElementsAre(7, 7, 7));
  EXPECT_THAT(trained.losses, Each(1.0));
  EXPECT_THAT(trained.ids, Each(numbers(0, 28)));
  EXPECT_THAT(told.texts, IsEmpty()) << "the end of data is not reported";
}

TEST(Scenario, a001_repeat_steps) {
  // A pass of 26 samples has seven steps, thirty steps are four passes and two steps.
  std::vector<std::int64_t> right;
  for (int i = 0; i < 4 * 26 + 8; ++i) right.push_back(i % 26);
  for (const std::size_t replicas : kReplicas) {
    FitOptions options{.epochs = 3};
    options.distribute.steps_per_epoch = 10;
    const Fit trained = fit(Dataset::range(26).batch(4).repeat(), replicas, options);
    EXPECT_THAT(trained.steps, ElementsAre(10, 10, 10));
    std::vector<std::int64_t> ids;
    for (const auto& epoch : trained.ids) ids.insert(ids.end(), epoch.begin(), epoch.end());
    EXPECT_EQ(ids, right);
  }
  MirroredStrategy strategy(devices(2));
  const Feed feed =
      strategy.distribute(Dataset::range(26).batch(4).repeat(), {.steps_per_epoch = 10});
  EXPECT_THAT(feed.plan().explain(),
              HasSubstr("a round of repeat() is 7 steps, so epochs and rounds differ"));
}

TEST(Scenario, a001_take) {
  for (const std::size_t replicas : kReplicas)
    for (const Dataset& source : {Dataset::range(100), generator_of(100)}) {
      const Fit trained = fit(source.batch(16).take(5), replicas, {.epochs = 2});
      EXPECT_THAT(trained.steps, Each(5U)) << "global steps, for any number of replicas";
      EXPECT_THAT(trained.ids, Each(numbers(0, 80)));
    }
}

TEST(Scenario, a002_shard_by_replica) {
  MirroredStrategy strategy(devices(4));
  const auto by_replica = [] {
    (void)Dataset::range(20).shard(4, static_cast<std::int64_t>(Replica::current().id()));
  };
  const auto refused = ThrowsMessage<ConfigError>(
      AllOf(HasSubstr("only inside strategy.run"), HasSubstr("strategy.distribute(dataset)")));
  EXPECT_THAT(by_replica, refused);
  {
    const Scope scope = strategy.scope();
    EXPECT_THAT(by_replica, refused);
  }
  // The remedy of the error.
  Feed feed = strategy.distribute(Dataset::range(20).batch(4));
  EXPECT_EQ(ids_of_epoch(feed), numbers(0, 20));
}

TEST(Scenario, a002_map_batch_cache_prefetch) {
  const Told told;
  std::atomic<int> decoded = 0;
  const Dataset dataset = Dataset::range(20)
                              .map(
                                  [&](std::int64_t x) {
                                    ++decoded;
                                    return x;
                                  },
                                  {.name = "decode"})
                              .batch(4)
                              .cache()
                              .prefetch({.steps = 2});
  const Fit trained = fit(dataset, 2, {.epochs = 3});
  EXPECT_THAT(trained.ids, Each(numbers(0, 20)));
  EXPECT_EQ(decoded, 20) << "the first epoch decodes, the others read the cache";
  EXPECT_THAT(told.texts, IsEmpty());
}

TEST(Scenario, a002_run_undistributed) {
  // tests/compile/run_undistributed.cc shows that run rejects a batch that was not distributed.
  // Here: the suggested loop has one device's step and the true loss, with nothing to divide by.
  const Weights right = by_hand(steps_of(20, 8));
  for (const std::size_t replicas : kReplicas) {
    const Fit trained = fit(Dataset::range(20).batch(8), replicas);
    expect_weights(trained.weights, right, "R=" + std::to_string(replicas));
    EXPECT_THAT(trained.losses, ElementsAre(1.0));
  }
}

}  // namespace
}  // namespace penstock::scenario
