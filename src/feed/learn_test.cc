// The shape that a loader learns from the first sample if functions declare no spec.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <new>
#include <stdexcept>
#include <vector>

#include "base/mutex.h"
#include "penstock/penstock.h"

namespace penstock {
namespace {

/// How often a function was called for each sample.
class Calls {
 public:
  void add(std::int64_t sample) {
    Lock lock(mutex_);
    ++calls_[sample];
  }
  [[nodiscard]] std::map<std::int64_t, int> counts() const {
    Lock lock(mutex_);
    return calls_;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::int64_t, int> calls_ PENSTOCK_GUARDED_BY(mutex_);
};

/// {"id": x} for each of `samples` numbers, by a function whose spec is unknown before it runs.
Dataset undeclared(std::int64_t samples) {
  return Dataset::range(samples).map(
      [](const Sample& sample) { return Sample::dict({{"id", sample.tensor()}}); });
}

class EmptyShareTest : public testing::TestWithParam<Tail> {};

// With 17 samples in batches of 1, three of four ranks never have a sample.
TEST_P(EmptyShareTest, EveryRankHasTheFieldsInEveryBatch) {
  for (const unsigned threads : {0U, 2U}) {
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      Loader loader(undeclared(17).batch(1),
                    {.shares = Shares{4, rank, 1}, .tail = GetParam(), .threads = threads});
      std::uint64_t steps = 0;
      while (const auto batch = loader.next()) {
        ++steps;
        ASSERT_NO_THROW((void)(*batch)["id"]) << "rank " << rank << ", step " << batch->step();
        EXPECT_EQ((*batch)["id"].shape().front(), static_cast<std::int64_t>(batch->rows()));
        EXPECT_EQ(batch->valid_count(), rank == 0 ? 1U : 0U);
      }
      EXPECT_EQ(steps, 17U);
    }
  }
}

TEST_P(EmptyShareTest, ARankWithoutSamplesAfterAResumeHasTheFields) {
  const auto options = [](std::uint32_t rank) {
    return LoaderOptions{.shares = Shares{4, rank, 1}, .tail = GetParam()};
  };
  Loader first(undeclared(17).batch(4), options(3));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(first.next());
  const State state = first.state();
  Loader second(undeclared(17).batch(4), options(3));
  second.restore(state);
  const auto last = second.next();
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->valid_count(), 0U);
  EXPECT_NO_THROW((void)(*last)["id"]);
}

TEST_P(EmptyShareTest, AReplayedStepHasTheFields) {
  const Loader loader(undeclared(17).batch(1), {.shares = Shares{4, 3, 1}, .tail = GetParam()});
  const Batch batch = loader.step(2);
  EXPECT_NO_THROW((void)batch["id"]);
}

INSTANTIATE_TEST_SUITE_P(Tails, EmptyShareTest, testing::Values(Tail::pad, Tail::short_));

TEST(LearnTest, ARankWithoutSamplesLearnsFromTheFirstOneThatCanBeComputed) {
  const auto dataset = Dataset::range(17)
                           .map([](const Sample& sample) {
                             if (sample.tensor().item<std::int64_t>() < 3)
                               throw std::runtime_error("broken");
                             return Sample::dict({{"id", sample.tensor()}});
                           })
                           .batch(1);
  Loader loader(dataset, {.shares = Shares{4, 3, 1}, .on_error = OnError::skip});
  const auto batch = loader.next();
  ASSERT_TRUE(batch.has_value());
  EXPECT_NO_THROW((void)(*batch)["id"]);
  EXPECT_EQ(loader.ledger().count(), 0U) << "these samples belong to other ranks";
}

TEST(LearnTest, AFailureOfALaterStepDoesNotPrecedeTheStepsBefore) {
  const Dataset samples = Dataset::range(6).map([](const Sample& sample) {
    if (sample.tensor().item<std::int64_t>() == 2) throw std::runtime_error("two");
    return Sample::dict({{"id", sample.tensor()}});
  });
  // Rank 1 has no sample of the first step, and sample 2 in the second.
  const Dataset steps = samples.take(1).batch(1).concatenate(samples.skip(1).batch(2));
  for (const unsigned threads : {0U, 2U}) {
    Loader loader(steps, {.shares = Shares{2, 1, 1}, .threads = threads});
    const auto first = loader.next();
    ASSERT_TRUE(first);
    EXPECT_EQ((*first)["id"].shape(), Shape{0});
    EXPECT_THROW((void)loader.next(), SampleError);
  }
}

TEST(LearnTest, UnderSkipNoFunctionIsCalledTwiceForASample) {
  for (const unsigned threads : {0U, 2U}) {
    for (const std::int64_t broken : {1, 4, 5}) {
      Calls calls;
      const auto dataset = Dataset::range(12)
                               .map([&](const Sample& sample) {
                                 const auto number = sample.tensor().item<std::int64_t>();
                                 calls.add(number);
                                 if (number < broken) throw std::runtime_error("broken");
                                 return Sample::dict({{"id", sample.tensor()}});
                               })
                               .batch(4);
      Loader loader(dataset, {.threads = threads, .on_error = OnError::skip});
      std::vector<std::int64_t> ids;
      while (const auto batch = loader.next())
        for (const std::int64_t id : (*batch)["id"].values<std::int64_t>()) ids.push_back(id);
      for (const auto& [sample, count] : calls.counts())
        EXPECT_EQ(count, 1) << "sample " << sample << " of " << broken << " broken ones";
      ASSERT_EQ(ids.size(), static_cast<std::size_t>(12 - broken));
      EXPECT_EQ(ids.front(), broken);
      EXPECT_EQ(loader.ledger().count(), static_cast<std::uint64_t>(broken));
    }
  }
}

TEST(LearnTest, AFunctionOfWholeBatchesIsNotCalledForABatchWhoseSamplesAllFailed) {
  std::atomic<int> empty{0};
  std::atomic<int> calls{0};
  const auto dataset = Dataset::range(12)
                           .map([](std::int64_t x) {
                             if (x >= 4 && x < 8) throw std::runtime_error("broken");
                             return x;
                           })
                           .batch(4)
                           .map([&](const Sample& batch) {
                             ++calls;
                             if (batch.tensor().shape().front() == 0) ++empty;
                             return batch;
                           });
  Loader loader(dataset, {.on_error = OnError::skip});
  std::vector<std::size_t> rows;
  while (const auto batch = loader.next()) rows.push_back(batch->rows());
  EXPECT_EQ(rows, (std::vector<std::size_t>{4, 0, 4}));
  EXPECT_EQ(empty, 0);
  EXPECT_GE(calls, 2);
}

}  // namespace
}  // namespace penstock
