#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "penstock/error.h"
#include "penstock/loader.h"
#include "penstock/plan.h"
#include "penstock/rng.h"
#include "penstock/state.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Document i has lengths[i] times the token i.
Dataset documents(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> values;
  std::vector<std::int64_t> offsets{0};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    values.insert(values.end(), static_cast<std::size_t>(lengths[i]), static_cast<std::int64_t>(i));
    offsets.push_back(static_cast<std::int64_t>(values.size()));
  }
  return Dataset::from_ragged(Tensor::of(values), Tensor::of(offsets), {.name = "documents"});
}

std::vector<std::int64_t> log_normal(std::size_t count) {
  Rng rng(5, 5);
  std::vector<std::int64_t> lengths(count);
  for (std::int64_t& length : lengths)
    length =
        std::min<std::int64_t>(1000, 1 + static_cast<std::int64_t>(std::exp(4 + rng.normal())));
  return lengths;
}

struct Steps {
  std::vector<std::vector<std::int64_t>> documents;  // of each step
  std::int64_t tokens = 0;
  std::int64_t room = 0;
  std::int64_t largest = 0;  // room of a step
};

Steps steps_of(Loader& loader, std::uint64_t most = UINT64_MAX) {
  Steps steps;
  for (std::uint64_t step = 0; step < most; ++step) {
    const auto batches = loader.next_step();
    if (!batches) break;
    steps.documents.emplace_back();
    for (const Batch& batch : *batches) {
      const Tensor all = batch[""];
      const auto size = static_cast<std::int64_t>(shape_values(all.shape()));
      steps.room += size;
      steps.largest = std::max(steps.largest, size);
      for (const std::int64_t length : batch.lengths()) steps.tokens += length;
      for (std::size_t row = 0; row < batch.rows(); ++row) {
        const Sample sample = batch.row(row);
        steps.documents.back().push_back(sample.tensor().values<std::int64_t>()[0]);
        EXPECT_EQ(static_cast<std::int64_t>(batch.sample_id()[row]), steps.documents.back().back());
      }
    }
  }
  return steps;
}

std::vector<std::int64_t> all_of(const Steps& steps) {
  std::vector<std::int64_t> all;
  for (const auto& step : steps.documents) all.insert(all.end(), step.begin(), step.end());
  return all;
}

TEST(BucketTest, SamplesOfSimilarLengthsShareAStep) {
  const Dataset dataset = documents({1, 7, 2, 9, 3, 8, 30}).bucket_by_length({4, 20}, {2, 3, 1});
  Loader loader(dataset, {.threads = 2});
  const Steps steps = steps_of(loader);
  EXPECT_THAT(steps.documents,
              ElementsAre(ElementsAre(0, 2), ElementsAre(4), ElementsAre(1, 3, 5), ElementsAre(6)));
}

TEST(BucketTest, EverySampleComesOnceAndOnlyTheLastStepOfABucketIsShort) {
  const auto lengths = log_normal(2000);
  const Dataset dataset =
      documents(lengths).shuffle({.seed = 2}).bucket_by_length({32, 64, 128}, {32, 16, 8, 4});
  Loader loader(dataset, {.threads = 2});
  Steps before;
  for (int epoch = 0; epoch < 2; ++epoch) {
    const Steps steps = steps_of(loader);
    auto all = all_of(steps);
    EXPECT_NE(all, all_of(before)) << "another epoch has another order";
    std::ranges::sort(all);
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<std::int64_t>(i));
    int short_steps = 0;
    for (const auto& step : steps.documents) {
      const auto longest = std::ranges::max(
          step, {}, [&](std::int64_t i) { return lengths[static_cast<std::size_t>(i)]; });
      const std::int64_t length = lengths[static_cast<std::size_t>(longest)];
      const std::size_t size = length < 32 ? 32U : length < 64 ? 16U : length < 128 ? 8U : 4U;
      ASSERT_LE(step.size(), size);
      short_steps += step.size() < size ? 1 : 0;
    }
    EXPECT_LE(short_steps, 4);
    before = steps;
  }
}

TEST(BucketTest, HalfThePaddingOfShuffledBatchesAtMost) {
  const Dataset shuffled = documents(log_normal(4000)).shuffle({.seed = 2});
  Loader plain(shuffled.padded_batch(32), {.threads = 2});
  Loader buckets(shuffled.bucket_by_length({16, 32, 64, 128, 256}, {64, 64, 32, 16, 8, 4}),
                 {.threads = 2});
  const Steps padded = steps_of(plain);
  const Steps bucketed = steps_of(buckets);
  EXPECT_EQ(padded.tokens, bucketed.tokens);
  EXPECT_LE(2 * (bucketed.room - bucketed.tokens), padded.room - padded.tokens);
}

TEST(BucketTest, AStepHasAtMostTheTokensAsked) {
  Loader loader(documents(log_normal(3000)).shuffle({.seed = 4}).batch_by_tokens(2000),
                {.threads = 2});
  const Steps steps = steps_of(loader);
  EXPECT_EQ(all_of(steps).size(), 3000U);
  EXPECT_LE(steps.largest, 2000);
  EXPECT_LT(static_cast<double>(steps.room - steps.tokens), 0.25 * static_cast<double>(steps.room));
}

TEST(BucketTest, SharesAndResumesDeliverTheSameSteps) {
  const auto dataset = [] {
    return documents(log_normal(300)).shuffle({.seed = 1}).bucket_by_length({50}, {12, 6});
  };
  Loader whole(dataset(), {.threads = 2});
  const Steps all = steps_of(whole);
  LoaderOptions three{.threads = 2};
  three.shares = Shares{3, 0, 3};
  Loader cut(dataset(), three);
  EXPECT_EQ(steps_of(cut).documents, all.documents);
  Loader before(dataset(), {.threads = 2});
  auto documents_seen = steps_of(before, 9).documents;
  Loader after(dataset(), three);
  after.restore(State::parse(before.state().to_json()));
  for (auto& step : steps_of(after).documents) documents_seen.push_back(std::move(step));
  EXPECT_EQ(documents_seen, all.documents);
}

TEST(BucketTest, ThePlanProvesThatEverySampleComesOnce) {
  const Dataset dataset =
      documents(log_normal(500)).shuffle({.seed = 1}).bucket_by_length({20, 60}, {8, 4, 2});
  const PassCheck check = Plan(dataset.resolve()).check();
  EXPECT_FALSE(check.wrong) << check.wrong->what;
  EXPECT_EQ(check.samples, 500U);
}

TEST(BucketTest, ASerializedPlanHasTheSameBuckets) {
  const Dataset dataset = documents({1, 9, 2, 30}).bucket_by_length({4, 20}, {2, 2, 2}).resolve();
  const Plan plan(dataset);
  EXPECT_EQ(Plan::parse(plan.serialize(), {dataset}).explain(), plan.explain());
}

TEST(BucketTest, ABucketMayBeEmptyAndRowsMayStayRagged) {
  BucketOptions options;
  options.padding.reset();
  Loader loader(documents({1, 2}).bucket_by_length({5, 10}, {4, 4, 4}, options), {.threads = 0});
  EXPECT_TRUE(loader.next()->is_ragged(""));
  EXPECT_FALSE(loader.next());
}

TEST(BucketTest, WrongBucketsAreRefused) {
  const Dataset data = documents({1, 2, 3000});
  EXPECT_THAT([&] { (void)data.bucket_by_length({5, 5}, {1, 1, 1}); },
              ThrowsMessage<ConfigError>(HasSubstr("boundary 1 is 5, after 5")));
  EXPECT_THAT([&] { (void)data.bucket_by_length({5}, {1}); },
              ThrowsMessage<ConfigError>(HasSubstr("1 boundaries and 1 batch sizes")));
  EXPECT_THAT([&] { (void)data.batch_by_tokens(0); },
              ThrowsMessage<ConfigError>(HasSubstr("max_tokens")));
  EXPECT_THAT([&] { (void)data.batch_by_tokens(INT64_MAX); },
              ThrowsMessage<ConfigError>(HasSubstr("max_tokens")));
  EXPECT_THAT([&] { Loader(data.batch_by_tokens(1000)).next(); },
              ThrowsMessage<ConfigError>(HasSubstr("sample 2 has length 3000")));
  EXPECT_THAT([&] { (void)data.batch(2).bucket_by_length({5}, {1, 1}); },
              ThrowsMessage<ConfigError>(HasSubstr("in the place of batch()")));
  EXPECT_THAT([] { (void)Dataset::range(3).bucket_by_length({5}, {1, 1}); },
              ThrowsMessage<ConfigError>(HasSubstr("has no length")));
}

TEST(BucketTest, ThePlanNamesThePaddingOfTheFirstPass) {
  const Dataset data = documents(log_normal(3000));
  BucketOptions multiple;
  multiple.padding->all.multiple_of = 16;
  for (const Dataset& dataset :
       {data.bucket_by_length({30, 100, 300}, {32, 16, 8, 4}),
        data.shuffle({.seed = 3}).bucket_by_length({30, 100, 300}, {32, 16, 8, 4}),
        data.shuffle({.seed = 3}).bucket_by_length({100}, {32, 16}, multiple),
        data.shuffle({.seed = 3}).bucket_by_length({100}, {32, 16}, {.pad_to_boundary = true}),
        data.shuffle({.seed = 3}).batch_by_tokens(2000, {.tail = Tail::drop})}) {
    Loader loader(dataset, {.threads = 0});
    const Steps steps = steps_of(loader);
    const double measured =
        100 * (1 - static_cast<double>(steps.tokens) / static_cast<double>(steps.room));
    EXPECT_THAT(loader.plan().explain(),
                HasSubstr(fmt::format("buckets: {:.2f} % of the first pass is padding", measured)));
  }
  const Plan ragged(data.bucket_by_length({30}, {8, 4}, {.padding = std::nullopt}).resolve());
  EXPECT_THAT(ragged.explain(), ::testing::Not(HasSubstr("is padding")));
}

}  // namespace
}  // namespace penstock
