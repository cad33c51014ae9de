#include "tests/scenarios/article.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "base/fault.h"

namespace penstock::scenario {
namespace {

/// `make scenarios-off` names a promise to break, and expects the row to fail.
class BrokenPromise final : public ::testing::Environment {
 public:
  void SetUp() override {
    if (const char* const name = std::getenv("PENSTOCK_OFF")) fault::switch_off(name);
  }
};
[[maybe_unused]] const auto* const kBroken =
    ::testing::AddGlobalTestEnvironment(new BrokenPromise);  // NOLINT: gtest owns it

constexpr std::size_t kFeatures = 3;

/// Adds the gradient of (w x - y)^2 for sample `id`.
void add_gradient(const Weights& weights, std::int64_t id, Weights& gradient) {
  const auto number = static_cast<double>(id);
  std::array<double, kFeatures> x{};
  double error = -std::cos(number);
  for (std::size_t k = 0; k < kFeatures; ++k) {
    x[k] = std::sin(number * (static_cast<double>(k) + 0.7));
    error += weights[k] * x[k];
  }
  for (std::size_t k = 0; k < kFeatures; ++k) gradient[k] += 2 * error * x[k];
}

class Optimizer {
 public:
  explicit Optimizer(bool adamw) : adamw_(adamw), mean_(kFeatures), square_(kFeatures) {}

  void apply(const Weights& gradient, Weights& weights) {
    ++iterations_;
    for (std::size_t k = 0; k < kFeatures; ++k)
      weights[k] -= adamw_ ? adamw(k, gradient[k], weights[k]) : 0.1 * gradient[k];
  }
  [[nodiscard]] std::uint64_t iterations() const { return iterations_; }

 private:
  double adamw(std::size_t k, double gradient, double weight) {
    const auto n = static_cast<double>(iterations_);
    mean_[k] = 0.9 * mean_[k] + 0.1 * gradient;
    square_[k] = 0.999 * square_[k] + 0.001 * gradient * gradient;
    const double step = mean_[k] / (1 - std::pow(0.9, n)) /
                        (std::sqrt(square_[k] / (1 - std::pow(0.999, n))) + 1e-8);
    return 0.01 * (step + 0.1 * weight);
  }

  bool adamw_;
  std::uint64_t iterations_ = 0;
  Weights mean_;
  Weights square_;
};

std::vector<std::int64_t> ids_with_padding(const Batch& share) {
  const bool named = share.spec().find("id").has_value();
  const auto values = share.values<std::int64_t>(named ? "id" : "");
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<std::string> devices(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t r = 0; r < count; ++r) names.push_back("cpu:" + std::to_string(r));
  return names;
}

Dataset generator_of(std::int64_t stop) {
  return Dataset::from_generator(
      [stop] {
        return [stop, next = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
          if (next == stop) return std::nullopt;
          return next++;
        };
      },
      {.name = "numbers"});
}

std::vector<std::int64_t> ids_of(const Batch& share) {
  if (share.rows() == 0) return {};
  const auto all = ids_with_padding(share);
  const std::size_t per_row = all.size() / share.rows();
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (share.valid()[i / per_row] != 0) ids.push_back(all[i]);
  return ids;
}

std::vector<std::int64_t> ids_of(const Step& step) {
  std::vector<std::int64_t> ids;
  for (const Batch& share : step.shares())
    for (const std::int64_t id : ids_of(share)) ids.push_back(id);
  return ids;
}

std::vector<std::size_t> rows_of(const Step& step) {
  std::vector<std::size_t> rows;
  for (const Batch& share : step.shares()) rows.push_back(share.rows());
  return rows;
}

std::vector<std::int64_t> ids_of_epoch(Feed& feed) {
  std::vector<std::int64_t> ids;
  while (auto step = feed.next())
    for (const std::int64_t id : ids_of(*step)) ids.push_back(id);
  return ids;
}

std::vector<std::int64_t> numbers(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(last - first));
  std::iota(all.begin(), all.end(), first);
  return all;
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> ids) {
  std::ranges::sort(ids);
  return ids;
}

Fit fit(const Dataset& dataset, std::size_t replicas, const FitOptions& options) {
  MirroredStrategy strategy(devices(replicas));
  Feed feed = strategy.distribute(dataset, options.distribute);
  Fit result;
  result.weights = options.start;
  result.weights.resize(kFeatures);
  Optimizer optimizer(options.adamw);
  for (std::uint64_t epoch = 0; epoch < options.epochs; ++epoch) {
    if (options.before_epoch) options.before_epoch(feed);
    std::vector<std::int64_t> seen;
    double losses = 0;
    std::uint64_t steps = 0;
    while (auto step = feed.next()) {
      const auto gradients = strategy.run(
          [&](Replica&, const Batch& share) {
            const auto ids = ids_of(share);
            Counted<Weights> sum{Weights(kFeatures), ids.size()};
            for (const std::int64_t id : ids) add_gradient(result.weights, id, sum.sum);
            return sum;
          },
          *step);
      const auto loss = strategy.run([](Replica&, const Batch&) { return 1.0; }, *step);
      optimizer.apply(strategy.reduce(Reduce::mean, gradients), result.weights);
      losses += strategy.reduce(Reduce::mean, loss);
      ++steps;
      for (const std::int64_t id : ids_of(*step)) seen.push_back(id);
      if (options.after_step) options.after_step(feed, *step, result.weights);
    }
    result.steps.push_back(steps);
    result.losses.push_back(losses / static_cast<double>(steps));
    result.ids.push_back(std::move(seen));
  }
  result.iterations = optimizer.iterations();
  return result;
}

Weights by_hand(const std::vector<std::vector<std::int64_t>>& steps) {
  Weights weights(kFeatures);
  Optimizer optimizer(false);
  for (const auto& ids : steps) {
    Weights gradient(kFeatures);
    for (const std::int64_t id : ids) add_gradient(weights, id, gradient);
    for (double& value : gradient) value /= static_cast<double>(ids.size());
    optimizer.apply(gradient, weights);
  }
  return weights;
}

std::vector<std::vector<std::int64_t>> steps_of(std::int64_t count, std::int64_t batch) {
  std::vector<std::vector<std::int64_t>> steps;
  for (std::int64_t first = 0; first < count; first += batch)
    steps.push_back(numbers(first, std::min(first + batch, count)));
  return steps;
}

void expect_weights(const Weights& got, const Weights& wanted, const std::string& where) {
  ASSERT_EQ(got.size(), wanted.size()) << where;
  for (std::size_t k = 0; k < got.size(); ++k) EXPECT_NEAR(got[k], wanted[k], 1e-12) << where;
}

std::vector<double> influences(const Dataset& dataset, std::size_t replicas, Loop loop,
                               std::size_t count) {
  MirroredStrategy strategy(devices(replicas));
  Feed feed = strategy.distribute(dataset);
  std::vector<double> all(count);
  while (auto step = feed.next()) {
    // The gradient of a model with one weight for each sample.
    const auto gradients = strategy.run(
        [&](Replica&, const Batch& share) {
          std::vector<double> gradient(count);
          const auto ids = ids_with_padding(share);
          for (std::size_t row = 0; row < ids.size(); ++row) {
            double part = 1;
            if (loop == Loop::mean) part /= static_cast<double>(share.rows());
            if (loop == Loop::global_count) part /= static_cast<double>(share.global_valid());
            if (loop == Loop::averaged)
              part *= share.weight()[row] * share.loss_scale() / static_cast<double>(share.rows());
            gradient[static_cast<std::size_t>(ids[row])] += part;
          }
          return gradient;
        },
        *step);
    auto gradient = strategy.reduce(loop == Loop::mean ? Reduce::mean : Reduce::sum, gradients);
    const auto ids = ids_of(*step);
    for (std::size_t i = 0; i < count; ++i) {
      if (loop == Loop::averaged) gradient[i] /= static_cast<double>(replicas);
      all[i] += gradient[i] * static_cast<double>(ids.size());
    }
  }
  return all;
}

}  // namespace penstock::scenario
