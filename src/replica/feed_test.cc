#include "replica/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::vector<std::string> kCpus{"cpu:0", "cpu:1", "cpu:2", "cpu:3",
                                     "cpu:4", "cpu:5", "cpu:6", "cpu:7"};

std::vector<std::string> cpus(std::size_t count) {
  return {kCpus.begin(), kCpus.begin() + static_cast<std::ptrdiff_t>(count)};
}

std::vector<std::uint64_t> ids_of(const Step& step) {
  std::vector<std::uint64_t> ids;
  for (const Batch& share : step.shares())
    ids.insert(ids.end(), share.sample_id().begin(), share.sample_id().end());
  return ids;
}

/// Sample numbers of the rest of an epoch.
std::vector<std::uint64_t> ids_of_epoch(Feed& feed) {
  std::vector<std::uint64_t> ids;
  while (auto step = feed.next())
    for (const std::uint64_t id : ids_of(*step)) ids.push_back(id);
  return ids;
}

std::size_t steps_of_epoch(Feed& feed) {
  std::size_t steps = 0;
  while (feed.next()) ++steps;
  return steps;
}

TEST(FeedTest, TheSamplesOfAStepDoNotDependOnTheReplicas) {
  const Dataset dataset = Dataset::range(103).shuffle({.seed = 7}).batch(16);
  MirroredStrategy one({"cpu:0"});
  Feed reference = one.distribute(dataset);
  std::vector<std::vector<std::uint64_t>> steps;
  while (auto step = reference.next()) steps.push_back(ids_of(*step));
  ASSERT_EQ(steps.size(), 7U);
  for (std::size_t replicas = 2; replicas <= 8; ++replicas) {
    MirroredStrategy strategy(cpus(replicas));
    Feed feed = strategy.distribute(dataset);
    for (const auto& expected : steps) {
      const auto step = feed.next();
      ASSERT_TRUE(step);
      EXPECT_EQ(ids_of(*step), expected);
      EXPECT_EQ(step->valid_count(), expected.size());
      EXPECT_EQ(step->global_valid(), expected.size());
      EXPECT_EQ(step->shares().size(), replicas);
    }
    EXPECT_TRUE(feed.at_end());
    EXPECT_FALSE(feed.next());
  }
}

TEST(FeedTest, ALoopIsOneEpochAndOneLeftEarlyEndsIt) {
  MirroredStrategy strategy(cpus(2));
  Feed feed = strategy.distribute(Dataset::range(10).batch(2));
  for (const Step& step : feed) {
    EXPECT_EQ(step.epoch(), 0U);
    break;
  }
  std::vector<std::uint64_t> steps;
  for (const Step& step : feed) {
    EXPECT_EQ(step.epoch(), 1U);
    steps.push_back(step.step());
  }
  EXPECT_THAT(steps, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(feed.epoch(), 2U);
  EXPECT_EQ(feed.size(), 5U);
}

TEST(FeedTest, RestartTakesTheFirstStepsOfEachPass) {
  MirroredStrategy strategy(cpus(2));
  const DistributeOptions options{.steps_per_epoch = 3, .restart = true};
  Feed feed = strategy.distribute(Dataset::range(7).batch(1), options);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_THAT(ids_of_epoch(feed), ElementsAre(0, 1, 2));
    EXPECT_EQ(feed.epoch(), epoch + 1);
  }
}

TEST(FeedTest, StatesWithStepsPerEpochResumeAtEveryPosition) {
  MirroredStrategy strategy(cpus(3));
  const Dataset dataset = Dataset::range(23).shuffle({.seed = 5}).batch(3);  // 8 steps
  for (const bool restart : {false, true})
    for (const std::uint64_t steps : {1U, 3U, 5U, 8U}) {
      const DistributeOptions options{.steps_per_epoch = steps, .restart = restart};
      Feed through = strategy.distribute(dataset, options);
      for (std::uint64_t position = 0; position < 4 * steps; ++position) {
        Feed resumed = strategy.distribute(dataset, options);
        resumed.restore(State::parse(through.state().to_json()));
        auto expected = through.next();
        if (!expected) expected = through.next();  // a state at the end is that of the next epoch
        const auto got = resumed.next();
        ASSERT_TRUE(got) << position;
        EXPECT_EQ(got->epoch(), expected->epoch());
        EXPECT_EQ(got->step(), expected->step());
        EXPECT_EQ(ids_of(*got), ids_of(*expected));
      }
    }
}

TEST(FeedTest, StatesOfAStreamWithStepsPerEpochResumeAtEveryPosition) {
  MirroredStrategy strategy(cpus(3));
  const Dataset dataset = Dataset::range(23).filter([](std::int64_t) { return true; }).batch(3);
  for (const bool restart : {false, true})
    for (const std::uint64_t steps : {1U, 3U, 5U, 8U, 10U}) {  // a pass has 8
      const DistributeOptions options{
          .steps_per_epoch = steps, .restart = restart, .short_epoch = steps > 8};
      Feed through = strategy.distribute(dataset, options);
      for (std::uint64_t position = 0; position < 4 * steps; ++position) {
        Feed resumed = strategy.distribute(dataset, options);
        resumed.restore(State::parse(through.state().to_json()));
        auto expected = through.next();
        if (!expected) expected = through.next();
        const auto got = resumed.next();
        ASSERT_TRUE(got) << position << " of " << steps;
        EXPECT_EQ(got->epoch(), expected->epoch()) << position << " of " << steps;
        EXPECT_EQ(got->step(), expected->step()) << position << " of " << steps;
        EXPECT_EQ(ids_of(*got), ids_of(*expected)) << position << " of " << steps;
      }
    }
}

TEST(FeedTest, TheEndOfADeclaredShortEpochOfAStreamIsKnown) {
  MirroredStrategy strategy(cpus(2));
  const Dataset dataset = Dataset::range(6).filter([](std::int64_t) { return true; }).batch(2);
  Feed feed = strategy.distribute(dataset, {.steps_per_epoch = 5, .short_epoch = true});
  for (int step = 0; step < 3; ++step) {
    EXPECT_FALSE(feed.at_end());
    ASSERT_TRUE(feed.next());
  }
  EXPECT_TRUE(feed.at_end());
  EXPECT_FALSE(feed.next());
  EXPECT_FALSE(feed.at_end());
}

TEST(FeedTest, TheStateOfALoaderIsConvertedToEpochsOfTheFeed) {
  MirroredStrategy strategy(cpus(2));
  const Dataset dataset = Dataset::range(7).batch(1);
  Loader loader(dataset);
  while (loader.next()) {
  }
  loader.next();
  loader.next();  // 9 steps are done
  Feed feed = strategy.distribute(dataset, {.steps_per_epoch = 5});
  feed.restore(loader.state());
  EXPECT_EQ(feed.epoch(), 1U);
  EXPECT_THAT(ids_of_epoch(feed), ElementsAre(2));
  Feed shorter = strategy.distribute(dataset, {.steps_per_epoch = 2});
  State state = loader.state();
  state.epochs = {1, 4};
  EXPECT_THROW(shorter.restore(state), StateError);
}

TEST(FeedTest, SetEpochRightAfterARestoreKeepsThePosition) {
  MirroredStrategy strategy({"cpu:0", "cpu:1"});
  const Dataset dataset = Dataset::range(48).batch(4);
  for (const DistributeOptions& options :
       {DistributeOptions{}, DistributeOptions{.steps_per_epoch = 5},
        DistributeOptions{.steps_per_epoch = 5, .restart = true}}) {
    Feed saved = strategy.distribute(dataset, options);
    for (int i = 0; i < 3; ++i) saved.next();
    Feed feed = strategy.distribute(dataset, options);
    feed.restore(saved.state());
    feed.set_epoch(0);
    EXPECT_EQ(feed.next()->step(), 3U);
    feed.set_epoch(0);
    EXPECT_EQ(feed.next()->step(), 0U) << "a step was received since";
  }
}

TEST(FeedTest, AStateOfALoaderBeyondTheStepsOfAnEpochEndsThatEpoch) {
  MirroredStrategy strategy(cpus(2));
  const Dataset stream = Dataset::range(7).filter([](std::int64_t) { return true; }).batch(1);
  for (const Dataset& dataset : {Dataset::range(7).batch(1), stream}) {
    Loader loader(dataset);
    for (int step = 0; step < 5; ++step) loader.next();
    Feed through = strategy.distribute(dataset, {.steps_per_epoch = 3});
    through.restore(loader.state());
    EXPECT_THAT(ids_of_epoch(through), ElementsAre(5));
    Feed anew = strategy.distribute(dataset, {.steps_per_epoch = 3, .restart = true});
    anew.restore(loader.state());
    EXPECT_EQ(anew.epoch(), 1U);
    EXPECT_THAT(ids_of_epoch(anew), ElementsAre(0, 1, 2));
  }
}

TEST(FeedTest, AnEndlessDatasetNeedsSteps) {
  MirroredStrategy strategy(cpus(2));
  const Dataset endless = Dataset::range(7).batch(2).repeat();
  EXPECT_THAT(
      [&] { (void)strategy.distribute(endless); },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("endless"), HasSubstr("steps_per_epoch"))));
  Feed feed = strategy.distribute(endless, {.steps_per_epoch = 10});
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(steps_of_epoch(feed), 10U);
}

TEST(FeedTest, TooManyStepsThrowUnlessShortEpochsAreAllowed) {
  MirroredStrategy strategy(cpus(2));
  const Dataset seven = Dataset::range(7).batch(1);
  EXPECT_THAT(
      [&] { (void)strategy.distribute(seven, {.steps_per_epoch = 10}); },
      ThrowsMessage<ConfigError>(
          AllOf(HasSubstr("7 steps"), HasSubstr("steps_per_epoch is 10"), HasSubstr("repeat()"))));
  Feed feed = strategy.distribute(seven, {.steps_per_epoch = 10, .short_epoch = true});
  for (int epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(steps_of_epoch(feed), 7U);
    EXPECT_EQ(feed.epoch(), static_cast<std::uint64_t>(epoch + 1));
  }
  EXPECT_THROW((void)strategy.distribute(seven, {.steps_per_epoch = 0}), ConfigError);
  EXPECT_THROW((void)strategy.distribute(seven, {.restart = true}), ConfigError);
  EXPECT_THROW((void)strategy.distribute(seven, {.short_epoch = true}), ConfigError);
}

TEST(FeedTest, DataOfUnknownLengthMayHaveAnyStepsUntilItEnds) {
  EXPECT_NO_THROW(check_epochs(Cardinality::unknown(), {}));
  EXPECT_NO_THROW(check_epochs(Cardinality::unknown(), {.steps_per_epoch = 10}));
  EXPECT_THROW(check_epochs(Cardinality::unknown(), {.steps_per_epoch = 0}), ConfigError);
}

TEST(FeedTest, AnEpochThatEndedWithAnErrorIsNotEndedAgainByTheNextLoop) {
  MirroredStrategy strategy(cpus(2));
  const Dataset stream = Dataset::range(6).filter([](std::int64_t) { return true; }).batch(2);
  Feed feed = strategy.distribute(stream, {.steps_per_epoch = 4});
  const auto loop = [&] {
    for (const Step& step : feed) EXPECT_EQ(step.epoch(), 0U);
  };
  EXPECT_THROW(loop(), ConfigError);
  EXPECT_EQ((*feed.begin()).epoch(), 1U);
}

TEST(FeedTest, NoDataIsAnEpochOfNoSteps) {
  MirroredStrategy strategy(cpus(2));
  Feed feed = strategy.distribute(Dataset::range(0).batch(4));
  EXPECT_TRUE(feed.at_end());
  EXPECT_FALSE(feed.next());
  EXPECT_EQ(feed.epoch(), 1U);
}

TEST(FeedTest, ThePlanShowsTheReplicas) {
  MirroredStrategy strategy(cpus(3));
  const Feed feed = strategy.distribute(Dataset::range(10).batch(4));
  EXPECT_EQ(feed.plan().shares().total, 3U);
  EXPECT_THAT(feed.plan().cut(2), ElementsAre(1, 1, 0));
}

TEST(FeedTest, UnbatchedDataAndExplicitSharesAreRejected) {
  MirroredStrategy strategy(cpus(2));
  EXPECT_THAT([&] { (void)strategy.distribute(Dataset::range(4)); },
              ThrowsMessage<ConfigError>(HasSubstr("batch")));
  DistributeOptions options;
  options.loader.shares = {2, 0, 1};
  EXPECT_THAT([&] { (void)strategy.distribute(Dataset::range(4).batch(2), options); },
              ThrowsMessage<ConfigError>(HasSubstr("shares")));
}

TEST(FeedTest, AFunctionReceivesItsPipelineAndTheReplicas) {
  MirroredStrategy strategy(cpus(4));
  InputContext seen;
  const Feed feed = strategy.distribute_from_function([&](const InputContext& context) {
    seen = context;
    return Dataset::range(40).batch(static_cast<std::int64_t>(context.per_replica_batch(16)));
  });
  EXPECT_EQ(feed.size(), 3U);
  EXPECT_EQ(seen.pipeline, 0U);
  EXPECT_EQ(seen.pipelines, 1U);
  EXPECT_EQ(seen.replicas, 4U);
}

TEST(FeedTest, TheDatasetOfAFunctionIsCombinedAndCutAgain) {
  MirroredStrategy strategy(cpus(3));
  const auto ids = [&](const Dataset& dataset, const DistributeOptions& options = {}) {
    Feed feed =
        strategy.distribute_from_function([&](const InputContext&) { return dataset; }, options);
    return ids_of_epoch(feed);
  };
  EXPECT_THAT(ids(Dataset::range(5).batch(2)), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(ids(Dataset::range(5).batch(2).take(1)), ElementsAre(0, 1));
  EXPECT_THAT(ids(Dataset::range(5).batch(2, {.drop_remainder = true})), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(ids(Dataset::range(5).batch(2).repeat(3)).size(), 15U);
  EXPECT_EQ(ids(Dataset::range(5).batch(2).repeat(), {.steps_per_epoch = 4}).size(), 24U);
  DistributeOptions drop;
  drop.loader.tail = Tail::drop;
  EXPECT_THAT(ids(Dataset::range(8).batch(2), drop), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(FeedTest, AFunctionThatDoesNotBatchOrDistributesIsRejected) {
  MirroredStrategy strategy(cpus(3));
  EXPECT_THAT(
      [&] {
        (void)strategy.distribute_from_function(
            [](const InputContext&) { return Dataset::range(5); });
      },
      ThrowsMessage<ConfigError>(HasSubstr("batch(b)")));
  EXPECT_THAT(
      [&] {
        (void)strategy.distribute_from_function([&](const InputContext&) {
          const Dataset dataset = Dataset::range(5).batch(2);
          (void)strategy.distribute(dataset);
          return dataset;
        });
      },
      ThrowsMessage<ConfigError>(HasSubstr("inside the function of distribute_from_function")));
  EXPECT_THAT(
      [&] {
        (void)strategy.distribute_from_function([&](const InputContext& context) {
          return Dataset::range(5).batch(static_cast<std::int64_t>(context.per_replica_batch(16)));
        });
      },
      ThrowsMessage<ConfigError>(
          AllOf(HasSubstr("3 replicas do not divide a batch of 16"), HasSubstr("distribute"))));
  // It is still usable after that.
  Feed feed = strategy.distribute(Dataset::range(5).batch(2));
  EXPECT_EQ(ids_of_epoch(feed).size(), 5U);
}

TEST(FeedTest, StopEndsItsThreadsAndNextStartsThemAgain) {
  MirroredStrategy strategy(cpus(2));
  Feed feed = strategy.distribute(Dataset::range(100).batch(10));
  feed.next();
  feed.stop();
  std::size_t samples = 10;
  while (true) {
    try {
      const auto step = feed.next();
      if (!step) break;
      samples += step->valid_count();
    } catch (const CancelledError&) {
      // The step that was in flight is delivered again.
    }
  }
  EXPECT_EQ(samples, 100U);
}

}  // namespace
}  // namespace penstock
