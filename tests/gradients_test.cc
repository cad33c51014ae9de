// One step over R replicas has the gradient of the same step on one device, for every cut.

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "penstock/penstock.h"

namespace penstock {
namespace {

constexpr std::size_t kWeights = 4;
using Gradient = std::vector<double>;

/// Adds the gradient of (w x - y)^2 for one sample, times `weight`.
void add_gradient(std::int64_t sample, double weight, Gradient& gradient) {
  constexpr std::array<double, kWeights> kModel{0.3, -1.7, 2.2, 0.05};
  std::array<double, kWeights> x{};
  double error = -std::cos(static_cast<double>(sample));
  for (std::size_t k = 0; k < kWeights; ++k) {
    x[k] = std::sin(static_cast<double>(sample) * (static_cast<double>(k) + 0.7));
    error += kModel[k] * x[k];
  }
  for (std::size_t k = 0; k < kWeights; ++k) gradient[k] += weight * 2 * error * x[k];
}

/// The mean over the valid rows of all shares, computed at once.
Gradient one_device(const Step& step) {
  Gradient gradient(kWeights);
  for (const Batch& share : step.shares())
    for (std::size_t row = 0; row < share.rows(); ++row)
      if (share.valid()[row] != 0)
        add_gradient(share.values<std::int64_t>()[row],
                     1.0 / static_cast<double>(step.global_valid()), gradient);
  return gradient;
}

/// The computation of a DDP loop: mean over slots of weight * loss, times loss_scale, averaged over
/// replicas.
Gradient by_weights(Strategy& strategy, const Step& step) {
  const auto gradients = strategy.run(
      [](Replica&, const Batch& share) {
        Gradient gradient(kWeights);
        for (std::size_t row = 0; row < share.rows(); ++row)
          add_gradient(share.values<std::int64_t>()[row],
                       share.weight()[row] * share.loss_scale() / static_cast<double>(share.rows()),
                       gradient);
        return gradient;
      },
      step);
  Gradient mean = strategy.reduce(Reduce::sum, gradients);
  for (double& value : mean) value /= strategy.num_replicas_in_sync();
  return mean;
}

Counted<Gradient> summed(const Batch& share) {
  Counted<Gradient> counted{Gradient(kWeights), share.valid_count()};
  for (std::size_t row = 0; row < share.rows(); ++row)
    if (share.valid()[row] != 0) add_gradient(share.values<std::int64_t>()[row], 1.0, counted.sum);
  return counted;
}

Gradient by_counts(Strategy& strategy, const Step& step) {
  return strategy.reduce(
      Reduce::mean, strategy.run([](Replica&, const Batch& share) { return summed(share); }, step));
}

/// Every replica gets the whole gradient; the first one's is checked.
Gradient by_all_reduce(Strategy& strategy, const Step& step) {
  const auto gradients = strategy.run(
      [](Replica& replica, const Batch& share) {
        return replica.all_reduce(Reduce::mean, summed(share));
      },
      step);
  for (std::size_t r = 1; r < gradients.size(); ++r)
    if (gradients.has(r)) {
      EXPECT_EQ(gradients[r], gradients[0]);
    }
  return gradients[0];
}

void expect_near(const Gradient& got, const Gradient& expected, const std::string& where) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t k = 0; k < got.size(); ++k) EXPECT_NEAR(got[k], expected[k], 1e-12) << where;
}

constexpr Tail kTails[] = {Tail::short_, Tail::even, Tail::pad, Tail::drop, Tail::wrap};

TEST(GradientsTest, OneStepOverReplicasEqualsTheStepOfOneDeviceForEveryCut) {
  std::size_t steps = 0;
  for (std::size_t replicas = 1; replicas <= 8; ++replicas) {
    std::vector<std::string> devices;
    for (std::size_t r = 0; r < replicas; ++r) devices.push_back("cpu:" + std::to_string(r));
    MirroredStrategy strategy(devices);
    for (const Tail tail : kTails) {
      for (const std::int64_t samples : {1, 2, 3, 7, 8, 17, 40})
        for (const std::int64_t batch : {1, 2, 3, 5, 8, 16, 50}) {
          DistributeOptions options;
          options.loader.threads = 0;
          options.loader.tail = tail;
          Feed feed = strategy.distribute(Dataset::range(samples).shuffle({.seed = 1}).batch(batch),
                                          options);
          while (auto step = feed.next()) {
            const std::string where =
                "N=" + std::to_string(samples) + " G=" + std::to_string(batch) +
                " R=" + std::to_string(replicas) + " tail " +
                std::to_string(static_cast<int>(tail)) + " step " + std::to_string(step->step());
            const Gradient expected = one_device(*step);
            expect_near(by_weights(strategy, *step), expected, where + " by weights");
            expect_near(by_counts(strategy, *step), expected, where + " by counts");
            expect_near(by_all_reduce(strategy, *step), expected, where + " by all_reduce");
            ++steps;
          }
        }
    }
  }
  EXPECT_GT(steps, 1000U);
}

TEST(GradientsTest, ARerunGivesTheSameBits) {
  const auto train = [](unsigned threads) {
    MirroredStrategy strategy({"cpu:0", "cpu:1", "cpu:2"});
    DistributeOptions options;
    options.loader.threads = threads;
    Feed feed = strategy.distribute(Dataset::range(103).shuffle({.seed = 2}).batch(16), options);
    Gradient total(kWeights);
    for (const Step& step : feed) {
      const Gradient gradient = by_all_reduce(strategy, step);
      for (std::size_t k = 0; k < kWeights; ++k) total[k] += gradient[k];
    }
    return total;
  };
  const Gradient first = train(0);
  for (int run = 0; run < 20; ++run) EXPECT_EQ(train(run % 3), first);
}

}  // namespace
}  // namespace penstock
