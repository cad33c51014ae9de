// Stop and resume.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/scenarios/article.h"

namespace penstock::scenario {
namespace {

using ::testing::ElementsAre;

TEST(Scenario, d_resume_replicas) {
  const Dataset dataset = Dataset::range(50).shuffle({.seed = 3}).batch(8);
  MirroredStrategy two(devices(2));
  Feed first = two.distribute(dataset);
  for (int i = 0; i < 3; ++i) first.next();
  const State state = State::parse(first.state().to_json());
  const auto rest = ids_of_epoch(first);
  EXPECT_EQ(rest.size(), 26U);
  for (const std::size_t replicas : kReplicas) {
    MirroredStrategy strategy(devices(replicas));
    Feed second = strategy.distribute(dataset);
    second.restore(state);
    EXPECT_EQ(ids_of_epoch(second), rest) << "R=" << replicas;
  }
}

TEST(Scenario, d_resume_random) {
  const auto augment = [](std::int64_t x, Rng& rng) {
    return 1000 * x + static_cast<std::int64_t>(rng.integer(1000));
  };
  for (const Dataset& source : {Dataset::range(30).shuffle({.seed = 5}), generator_of(30)}) {
    const Dataset dataset = source.map(augment, {.name = "augment"}).batch(4);
    MirroredStrategy two(devices(2));
    Feed whole = two.distribute(dataset);
    std::vector<std::string> states;
    std::vector<std::vector<std::int64_t>> steps;
    for (int epoch = 0; epoch < 2; ++epoch)
      while (auto step = whole.next()) {
        steps.push_back(ids_of(*step));
        states.push_back(whole.state().to_json());
      }
    ASSERT_EQ(steps.size(), 16U);
    EXPECT_NE(steps[0], steps[8]) << "drawn again in each epoch";
    // From every position on, the same numbers to the last bit.
    for (std::size_t at = 0; at + 1 < steps.size(); ++at) {
      MirroredStrategy three(devices(3));
      Feed resumed = three.distribute(dataset);
      resumed.restore(State::parse(states[at]));
      for (std::size_t next = at + 1; next < steps.size(); ++next) {
        auto step = resumed.next();
        if (!step) step = resumed.next();  // the epoch between
        ASSERT_TRUE(step);
        EXPECT_EQ(ids_of(*step), steps[next]) << "step " << next << ", resumed after " << at;
      }
    }
  }
}

TEST(Scenario, d_resume_size) {
  const auto image = [](std::uint64_t) {
    const std::vector<std::uint8_t> pixels(std::size_t{64} * 64 * 3);
    return Sample(Tensor::of(std::span(pixels), {64, 64, 3}));
  };
  Loader loader(
      Dataset::from_index(10'000, image, {.name = "images"}).shuffle({.seed = 1}).batch(32));
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(loader.next());
  EXPECT_LT(loader.state().to_json().size(), 1024U);
  EXPECT_EQ(loader.state().step, 3U);
}

TEST(Scenario, d_resume_fit) {
  // Four epochs of five steps; the run ends after step 3 of epoch 2.
  const Dataset dataset = Dataset::range(20).shuffle({.seed = 2}).batch(4);
  const Fit whole = fit(dataset, 2, {.epochs = 4});
  struct Stop {};
  std::string state;
  Weights weights;
  std::vector<std::int64_t> visits;
  FitOptions first{.epochs = 4};
  first.after_step = [&](Feed& feed, const Step& step, const Weights& now) {
    for (const std::int64_t id : ids_of(step)) visits.push_back(id);
    if (visits.size() < 32) return;
    state = feed.state().to_json();
    weights = now;
    throw Stop();
  };
  EXPECT_THROW(fit(dataset, 2, first), Stop);
  EXPECT_EQ(State::parse(state).epoch, 1U);
  EXPECT_EQ(State::parse(state).step, 3U);

  // On another number of replicas.
  FitOptions rest;
  rest.epochs = 3;
  rest.start = weights;
  rest.before_epoch = [&](Feed& feed) {
    if (!state.empty()) feed.restore(State::parse(std::exchange(state, {})));
  };
  const Fit resumed = fit(dataset, 3, rest);
  EXPECT_THAT(resumed.steps, ElementsAre(2, 5, 5)) << "resumes at step 4 of epoch 2";
  for (const auto& ids : resumed.ids) visits.insert(visits.end(), ids.begin(), ids.end());
  std::vector<std::int64_t> right;
  for (const auto& ids : whole.ids) right.insert(right.end(), ids.begin(), ids.end());
  EXPECT_EQ(visits, right) << "80 visits, in the order of a run that never stopped";
  expect_weights(resumed.weights, whole.weights, "as if it had never stopped");
}

}  // namespace
}  // namespace penstock::scenario
