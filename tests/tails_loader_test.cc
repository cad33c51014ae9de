// The tail policies from a consumer's view: real batches of all shares.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "graph/tail.h"
#include "penstock/penstock.h"
#include "plan/plan_data.h"
#include "run/compute.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Tail kTails[] = {Tail::short_, Tail::drop, Tail::even,
                           Tail::pad,    Tail::wrap, Tail::strict};
constexpr std::uint64_t kNone = UINT64_MAX;
using Step = std::vector<Batch>;
using Ids = std::vector<std::uint64_t>;

Ids ids_of(const Step& step) {
  Ids ids;
  for (const Batch& batch : step)
    for (std::size_t row = 0; row < batch.rows(); ++row)
      if (batch.valid()[row] != 0) ids.push_back(batch.sample_id()[row]);
  return ids;
}

std::vector<Ids> epoch_of(Loader& loader) {
  std::vector<Ids> steps;
  while (const auto step = loader.next_step()) steps.push_back(ids_of(*step));
  return steps;
}

Dataset squares(std::int64_t count) {
  return Dataset::range(count).map([](std::int64_t x) { return static_cast<double>(x * x + 1); });
}

/// The rule of DESIGN, checked with valid, weight, loss_scale and the counts of the batches.
void expect_step(const Step& step, std::uint64_t slots) {
  double sum = 0;
  double average = 0;
  std::uint64_t valid = 0;
  for (const Batch& batch : step) {
    const auto x = batch.values<double>();
    std::uint64_t here = 0;
    double weighed = 0;
    for (std::size_t row = 0; row < batch.rows(); ++row) {
      const bool is_sample = batch.valid()[row] != 0;
      ASSERT_EQ(is_sample, batch.sample_id()[row] != kNone);
      ASSERT_EQ(is_sample, batch.weight()[row] > 0);
      const auto id = static_cast<double>(batch.sample_id()[row]);
      ASSERT_EQ(x[row], is_sample ? id * id + 1 : 0.0);
      weighed += static_cast<double>(batch.weight()[row]) * x[row];
      here += is_sample ? 1 : 0;
      sum += x[row];
    }
    if (slots > 0) {
      ASSERT_EQ(batch.rows(), slots);
      ASSERT_NEAR(batch.loss_scale(), 1.0, 1e-7);
    } else {
      ASSERT_EQ(batch.rows(), here);
      ASSERT_THAT(batch.weight(), testing::Each(1.0F));
    }
    ASSERT_EQ(batch.valid_count(), here);
    valid += here;
    if (batch.rows() > 0)
      average += weighed / static_cast<double>(batch.rows()) * batch.loss_scale();
  }
  for (const Batch& batch : step) ASSERT_EQ(batch.global_valid(), valid);
  average /= static_cast<double>(step.size());
  ASSERT_NEAR(average, sum / static_cast<double>(valid), 1e-5 * average);
}

TEST(TailsLoaderTest, BatchesOfEveryPolicyAreCompleteAndWeighSamplesEqually) {
  for (const std::int64_t count : {0, 1, 2, 5, 12, 13, 17})
    for (const std::int64_t size : {1, 4, 5, 16})
      for (const std::uint32_t shares : {1U, 2U, 3U, 4U, 7U})
        for (const Tail tail : kTails) {
          SCOPED_TRACE(
              fmt::format("N = {}, G = {}, R = {}, {}", count, size, shares, tail_name(tail)));
          if (tail == Tail::strict && (count % size != 0 || size % shares != 0)) continue;
          Loader loader(squares(count).shuffle({.seed = 3}).batch(size),
                        {.shares = {{shares, 0, shares}}, .tail = tail, .threads = 2});
          const std::uint64_t slots =
              tail == Tail::pad ? (static_cast<std::uint64_t>(size) + shares - 1) / shares : 0;
          std::map<std::uint64_t, std::uint64_t> seen;
          while (const auto step = loader.next_step()) {
            ASSERT_NO_FATAL_FAILURE(expect_step(*step, slots));
            for (const std::uint64_t id : ids_of(*step)) ++seen[id];
          }
          if (tail == Tail::drop) continue;
          ASSERT_EQ(seen.size(), static_cast<std::size_t>(count));
          for (const auto& [id, times] : seen)
            if (tail != Tail::wrap) {
              ASSERT_EQ(times, 1U);
            }
        }
}

TEST(TailsLoaderTest, AWrapRepeatsTheFirstSamplesOfItsRound) {
  Loader loader(Dataset::range(7).shuffle({.seed = 5}).batch(4, {.tail = Tail::wrap}).repeat(3),
                {.threads = 2});
  const auto steps = epoch_of(loader);
  ASSERT_EQ(steps.size(), 6U);
  for (std::size_t round = 0; round < 3; ++round)
    EXPECT_EQ(steps[2 * round + 1].back(), steps[2 * round].front());
  EXPECT_NE(steps[0], steps[2]) << "each round has its own order";
  Loader small(Dataset::range(2).batch(5, {.tail = Tail::wrap}), {.threads = 0});
  EXPECT_THAT(epoch_of(small), ElementsAre(Ids{0, 1, 0, 1, 0}));
}

TEST(TailsLoaderTest, ARepeatedSampleDrawsOtherNumbers) {
  const auto draw = [](std::int64_t, Rng& rng) {
    return static_cast<std::int64_t>(rng.integer(1ULL << 60));
  };
  const Dataset drawn = Dataset::range(2).map(draw);
  Loader loader(drawn.batch(6, {.tail = Tail::wrap}).repeat(2), {.threads = 0});
  std::vector<std::int64_t> all;
  while (const auto batch = loader.next())
    all.insert(all.end(), batch->values<std::int64_t>().begin(),
               batch->values<std::int64_t>().end());
  ASSERT_EQ(all.size(), 12U);
  Loader plain(drawn.batch(2), {.threads = 0});
  const Batch first = *plain.next();
  EXPECT_TRUE(std::ranges::equal(first.values<std::int64_t>(), std::span(all).first(2)));
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
}

TEST(TailsLoaderTest, SkippedRowsOfAPaddedShareBecomePadding) {
  const auto refuse_three = [](const Sample& sample) {
    const auto x = sample.tensor().item<std::int64_t>();
    if (x == 3 || x == 9) throw SampleError("not this one");
    return Sample::dict({{"text", Tensor::bytes(std::string(static_cast<std::size_t>(x), 'a'))},
                         {"x", Tensor::scalar(x)}});
  };
  for (const unsigned threads : {0U, 2U}) {
    Loader loader(Dataset::range(10).map(refuse_three).batch(8, {.tail = Tail::pad}),
                  {.shares = {{2, 0, 2}}, .threads = threads, .on_error = OnError::skip});
    const Step first = *loader.next_step();
    EXPECT_THAT(first[0].sample_id(), ElementsAre(0, 1, 2, kNone));
    EXPECT_THAT(first[0].valid(), ElementsAre(1, 1, 1, 0));
    EXPECT_THAT(first[0].weight(), ElementsAre(1, 1, 1, 0));
    EXPECT_THAT(first[0].values<std::int64_t>("x"), ElementsAre(0, 1, 2, 0));
    EXPECT_THAT(first[0].ragged("text").offsets, ElementsAre(0, 0, 1, 3, 3));
    EXPECT_EQ(first[0].valid_count(), 3U);
    EXPECT_NEAR(first[0].loss_scale(), 1.0, 1e-7);
    EXPECT_EQ(first[1].valid_count(), 4U);
    const Step last = *loader.next_step();
    EXPECT_THAT(last[0].sample_id(), ElementsAre(8, kNone, kNone, kNone));
    EXPECT_THAT(last[0].weight(), ElementsAre(4, 0, 0, 0)) << "2 shares * 4 slots / 2 samples";
    EXPECT_THAT(last[1].sample_id(), ElementsAre(kNone, kNone, kNone, kNone));
    EXPECT_EQ(last[1].valid_count(), 0U);
    EXPECT_EQ(loader.ledger().count(), 2U);
  }
}

TEST(TailsLoaderTest, AStateResumesAtEveryBatchSizeFromEveryPosition) {
  const Dataset samples = Dataset::range(13).shuffle({.seed = 2});
  for (const Tail tail : kTails)
    for (const std::int64_t size : {1, 13}) {
      const Dataset before =
          samples.batch(tail == Tail::strict ? size : 4, {.tail = tail}).repeat(2);
      Loader whole(before, {.threads = 0});
      std::vector<Ids> received;
      do {
        const State state = State::parse(whole.state().to_json());
        for (const std::int64_t other : {1, 3, 5, 13, 20}) {
          SCOPED_TRACE(
              fmt::format("{}, {} steps, then by {}", tail_name(tail), received.size(), other));
          if (tail == Tail::strict && 13 % other != 0) continue;
          Loader resumed(samples.batch(other, {.tail = tail}).repeat(2), {.threads = 0});
          if (tail == Tail::strict &&
              state.position % 13 % static_cast<std::uint64_t>(other) != 0) {
            EXPECT_THROW(resumed.restore(state), StateError);
            continue;
          }
          resumed.restore(state);
          std::vector<Ids> all = received;
          if (state.epoch == 0)
            for (Ids& step : epoch_of(resumed)) all.push_back(std::move(step));
          std::map<std::uint64_t, int> times;
          for (const Ids& step : all)
            for (const std::uint64_t id : step) ++times[id];
          if (tail != Tail::drop) {
            ASSERT_EQ(times.size(), 13U);
          }
          for (const auto& [id, count] : times) {
            if (tail == Tail::wrap) {
              ASSERT_GE(count, 2);
            } else if (tail == Tail::drop) {
              ASSERT_LE(count, 2);
            } else {
              ASSERT_EQ(count, 2);
            }
          }
        }
        if (auto step = whole.next_step()) received.push_back(ids_of(*step));
      } while (whole.epoch() == 0 && !whole.at_end());
    }
}

TEST(TailsLoaderTest, DeliveredStepsAreReplayedWithTheirTail) {
  const Dataset samples = Dataset::range(13).shuffle({.seed = 2});
  for (const Tail tail : {Tail::even, Tail::wrap, Tail::pad, Tail::drop}) {
    Loader before(samples.batch(4), {.tail = tail, .threads = 0});
    const Ids first = ids_of(*before.next_step());
    const Ids second = ids_of(*before.next_step());
    Iterator after = Loader(samples.batch(5), {.tail = Tail::short_, .threads = 0}).iterate();
    after.restore(State::parse(before.state().to_json()));
    EXPECT_EQ(ids_of(after.replay(0)), first);
    EXPECT_EQ(ids_of(after.replay(1)), second);
    std::size_t rest = first.size() + second.size();
    while (const auto step = after.next_step()) rest += ids_of(*step).size();
    EXPECT_EQ(rest, 13U) << tail_name(tail);
  }
}

TEST(TailsLoaderTest, AStrictStateWhoseRestDoesNotDivideIsRejectedWithTheSizes) {
  const Dataset samples = Dataset::range(12);
  Loader before(samples.batch(4), {.tail = Tail::strict, .threads = 0});
  before.next();
  Loader after(samples.batch(6), {.tail = Tail::strict, .threads = 0});
  try {
    after.restore(before.state());
    FAIL() << "8 samples were delivered in batches of 6";
  } catch (const StateError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("batches of 6"), HasSubstr("8 samples"),
                                             HasSubstr("tail=short")));
  }
}

TEST(TailsLoaderTest, UnbatchDeliversTheSamplesAndTheRepeatsOfAWrap) {
  const auto unbatched = [](Tail tail) {
    Loader loader(Dataset::range(5).batch(3, {.tail = tail}).unbatch().batch(100), {.threads = 0});
    return ids_of(*loader.next_step());
  };
  EXPECT_THAT(unbatched(Tail::even), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(unbatched(Tail::pad), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(unbatched(Tail::strict), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(unbatched(Tail::wrap), ElementsAre(0, 1, 2, 3, 4, 0));
  EXPECT_EQ(Dataset::range(5).batch(3, {.tail = Tail::wrap}).unbatch().cardinality(),
            Cardinality::of(6));
}

TEST(TailsLoaderTest, SampleOfABatchedDatasetReturnsTheRowOfTheBatch) {
  const auto sums = [](const Sample& batch) {
    const auto x = batch.tensor().values<std::int64_t>();
    std::vector<std::int64_t> all(x.size(), std::accumulate(x.begin(), x.end(), std::int64_t{0}));
    return Sample(Tensor::of(std::span<const std::int64_t>(all), batch.tensor().shape()));
  };
  for (const Tail tail : {Tail::short_, Tail::even, Tail::pad, Tail::wrap, Tail::drop}) {
    const Dataset plain = Dataset::range(7).shuffle().batch(4, {.tail = tail});
    for (const Dataset& dataset : {plain, plain.map(sums)}) {
      Loader loader(dataset, {.threads = 0});
      std::uint64_t number = 0;
      while (const auto batch = loader.next())
        for (std::size_t row = 0; row < batch->valid_count(); ++row)
          EXPECT_EQ(dataset.sample(number++).tensor().item<std::int64_t>(),
                    batch->values<std::int64_t>()[row])
              << dataset.describe() << number;
    }
  }
}

TEST(TailsLoaderTest, BlocksOfAPaddedStepAddUpToItsMean) {
  const Plan plan(squares(7).batch(5), {.tail = Tail::pad});
  double sum = 0;
  for (std::uint64_t first = 0; first < 5; ++first) {
    const Batch block = run_block(plan, {0, 1, first, 1});  // 2 samples, then 3 empty slots
    ASSERT_EQ(block.rows(), 1U);
    ASSERT_EQ(block.valid_count(), first < 2 ? 1U : 0U);
    sum += static_cast<double>(block.weight()[0]) * block.values<double>()[0] * block.loss_scale();
  }
  EXPECT_DOUBLE_EQ(sum, (26.0 + 37.0) / 2);
  EXPECT_THROW((void)run_block(plan, {0, 1, 0, 6}), ConfigError);
}

TEST(TailsLoaderTest, AFailureAfterTheEndOfTheOrderNamesItsRow) {
  const auto not_zero = [](std::int64_t x) {
    if (x == 0) throw SampleError("zero");
    return x;
  };
  const Plan plan(Dataset::range(3).map(not_zero).batch(6, {.tail = Tail::wrap}));
  Scratch scratch;
  const ScratchBlock block(plan.data()->program.spec, 4, scratch);
  const auto done = compute_rows(plan.data()->program, plan.data()->geometry.step(0, 0), 1,
                                 block.view(), scratch);  // positions 1, 2, 0, 1
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.failure().row, 2U);
}

TEST(TailsLoaderTest, PaddedSharesOfUnknownSpecAreFilledLikeOthers) {
  const auto same = [](const Sample& sample) { return sample; };
  Loader loader(Dataset::range(9).map(same).batch(8, {.tail = Tail::pad}),
                {.shares = {{4, 0, 4}}, .threads = 2});
  (void)loader.next_step();
  const Step last = *loader.next_step();
  EXPECT_THAT(last[0].values<std::int64_t>(), ElementsAre(8, 0));
  EXPECT_THAT(last[3].values<std::int64_t>(), ElementsAre(0, 0));
  EXPECT_THAT(last[3].valid(), ElementsAre(0, 0));
}

}  // namespace
}  // namespace penstock
