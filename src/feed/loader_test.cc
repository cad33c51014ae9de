#include "penstock/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <system_error>

#include "base/blocking_clock_for_tests.h"
#include "base/fault.h"
#include "base/pool.h"
#include "base/report.h"
#include "base/temp_folder_for_tests.h"
#include "base/thread.h"
#include "penstock/io.h"
#include "trace/trace.h"

namespace penstock {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::uint64_t> ids_of_epoch(Loader& loader) {
  std::vector<std::uint64_t> ids;
  while (auto batch = loader.next())
    ids.insert(ids.end(), batch->sample_id().begin(), batch->sample_id().end());
  return ids;
}

TEST(LoaderTest, EveryEpochDeliversEverySampleOnceInAnotherOrder) {
  Loader loader(Dataset::range(103).shuffle({.seed = 1}).batch(16));
  const auto first = ids_of_epoch(loader);
  const auto second = ids_of_epoch(loader);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 103U);
  EXPECT_EQ(std::set(second.begin(), second.end()).size(), 103U);
  EXPECT_NE(first, second);
  EXPECT_EQ(loader.size(), 7U);
}

TEST(LoaderTest, RangeForIsOneEpochAndLeavingItEarlyEndsThatEpoch) {
  Loader loader(Dataset::range(10).batch(2));
  for (const Batch& batch : loader) {
    EXPECT_EQ(batch.epoch(), 0U);
    break;
  }
  int steps = 0;
  for (const Batch& batch : loader) {
    EXPECT_EQ(batch.epoch(), 1U);
    ++steps;
  }
  EXPECT_EQ(steps, 5);
}

TEST(LoaderTest, AnEpochThatNextFinishedAfterALoopWasLeftIsNotEndedTwice) {
  Loader loader(Dataset::range(10).batch(2));
  for (const Batch& batch : loader)
    if (batch.step() == 1) break;
  while (loader.next()) {
  }
  EXPECT_EQ((*loader.begin()).epoch(), 1U);
}

TEST(LoaderTest, RangeForResumesFromARestoredState) {
  Loader first(Dataset::range(10).batch(2));
  first.next();
  Loader second(Dataset::range(10).batch(2));
  second.restore(first.state());
  std::vector<std::uint64_t> steps;
  for (const Batch& batch : second) steps.push_back(batch.step());
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4));
}

TEST(LoaderTest, TheEndIsKnownOneStepAhead) {
  Loader loader(Dataset::range(4).batch(2));
  EXPECT_FALSE(loader.at_end());
  loader.next();
  EXPECT_FALSE(loader.at_end());
  loader.next();
  EXPECT_TRUE(loader.at_end());
  EXPECT_EQ(loader.state().epoch, 1U) << "after the last batch the state is the next epoch's start";
}

TEST(LoaderTest, AnEmptyDatasetHasNoStepsAndNoError) {
  Loader loader(Dataset::range(0).shuffle().batch(4));
  EXPECT_EQ(loader.size(), 0U);
  EXPECT_EQ(loader.next(), std::nullopt);
  EXPECT_EQ(loader.next(), std::nullopt);
}

TEST(LoaderTest, IteratorsHaveSeparatePositions) {
  const Loader loader(Dataset::range(6).batch(2));
  Iterator a = loader.iterate();
  Iterator b = loader.iterate();
  a.next();
  a.next();
  EXPECT_EQ(b.next()->step(), 0U);
  EXPECT_EQ(a.next()->step(), 2U);
  EXPECT_NE(a.state(), b.state());
}

TEST(LoaderTest, AFunctionThatThrowsNamesItsSampleAndTheLoaderStaysUsable) {
  std::atomic<bool> broken{true};
  Loader loader(Dataset::range(20)
                    .map(
                        [&broken](std::int64_t x) {
                          if (x == 13 && broken) throw std::runtime_error("bad luck");
                          return x;
                        },
                        {.name = "luck"})
                    .batch(4)
                    .with_options({.name = "train"}),
                {.threads = 2});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(loader.next());
  for (int tries = 0; tries < 2; ++tries) {
    try {
      loader.next();
      FAIL() << "no error";
    } catch (const SampleError& error) {
      EXPECT_EQ(error.where().sample->number, 13U);
      EXPECT_EQ(error.where().step, 3U);
      EXPECT_EQ(error.where().epoch, 0U);
      EXPECT_EQ(error.where().position, 12U);
      EXPECT_EQ(error.where().dataset, "train");
      EXPECT_THAT(error.where().op, HasSubstr("luck"));
      EXPECT_THAT(error.what(), HasSubstr("bad luck"));
      EXPECT_THROW(std::rethrow_exception(error.cause()), std::runtime_error);
    }
  }
  broken = false;
  EXPECT_EQ(loader.next()->step(), 3U);
  EXPECT_EQ(loader.next()->step(), 4U);
  EXPECT_EQ(loader.next(), std::nullopt);
}

TEST(LoaderTest, OfSeveralFailuresInAStepTheFirstRowIsReported) {
  for (unsigned threads = 0; threads <= 2; ++threads) {
    Loader loader(Dataset::range(64)
                      .map([](std::int64_t x) -> std::int64_t {
                        throw std::runtime_error(std::to_string(x));
                      })
                      .batch(64),
                  {.threads = threads});
    try {
      loader.next();
      FAIL();
    } catch (const SampleError& error) {
      EXPECT_EQ(error.where().sample->number, 0U);
    }
  }
}

TEST(LoaderTest, ASampleOfAnotherRankNamesFieldAndBothShapes) {
  Loader loader(Dataset::from_index(10, [](std::uint64_t i) {
                  const std::vector<float> x(2);
                  const Tensor column = Tensor::of(std::span<const float>(x), {2, 1});
                  return Sample::dict({{"x", i == 6 ? column : Tensor::of(x)}});
                }).batch(4));
  EXPECT_TRUE(loader.next());
  try {
    loader.next();
    FAIL();
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"x\""));
    EXPECT_THAT(error.what(), HasSubstr("f32[2, 1]"));
    EXPECT_THAT(error.what(), HasSubstr("f32[2]"));
    EXPECT_EQ(error.where().sample->number, 6U);
  }
}

TEST(LoaderTest, AFunctionWithoutASpecIsCalledOncePerSample) {
  std::atomic<int> calls{0};
  Loader loader(Dataset::range(50)
                    .map([&calls](const Sample& s) {
                      ++calls;
                      return s;
                    })
                    .batch(8),
                {.threads = 2});
  EXPECT_FALSE(loader.plan().dataset().element_spec().known);
  EXPECT_EQ(ids_of_epoch(loader).size(), 50U);
  EXPECT_EQ(calls, 50);
}

TEST(LoaderTest, ASlowSampleDelaysItsOwnBatchOnly) {
  BlockingClock clock;
  Loader loader(Dataset::range(16)
                    .map([&](std::int64_t x) {
                      if (x == 1) clock.pause(milliseconds(200));
                      return x;
                    })
                    .batch(4),
                {.threads = 2, .clock = &clock});
  const std::uint32_t run = trace::new_run() + 1;  // the loader's own, when it starts
  const auto second_is_ready = [run] {
    return std::ranges::any_of(trace::events_of(run), [](const trace::Event& event) {
      return event.kind == trace::Kind::ready && event.step == 1;
    });
  };
  Thread waker("waker", [&] {
    clock.wait_for_sleepers(1);
    while (!second_is_ready()) yield_thread();
    clock.advance(milliseconds(200));
  });
  std::vector<std::uint64_t> delivered;
  while (auto batch = loader.next()) {
    delivered.push_back(batch->step());
    EXPECT_EQ(loader.trace_run(), run);
  }
  waker.join();
  EXPECT_THAT(delivered, ElementsAre(0, 1, 2, 3));
  std::vector<std::uint64_t> ready;
  std::vector<std::uint64_t> handed;
  for (const trace::Event& event : trace::events_of(run)) {
    if (event.kind == trace::Kind::ready) ready.push_back(event.step);
    if (event.kind == trace::Kind::delivered) handed.push_back(event.step);
  }
  ASSERT_EQ(ready.size(), 4U);
  EXPECT_LT(std::ranges::find(ready, 1U), std::ranges::find(ready, 0U));
  EXPECT_THAT(handed, ElementsAre(0, 1, 2, 3));
}

TEST(LoaderTest, StopEndsAWaitAndTheLoaderStaysUsable) {
  std::atomic<bool> slept{false};
  BlockingClock clock;
  Loader loader(Dataset::range(8)
                    .map([&](std::int64_t x) {
                      if (x == 2 && !slept.exchange(true)) clock.pause(hours(1));
                      return x;
                    })
                    .batch(2),
                {.threads = 2});
  EXPECT_TRUE(loader.next());
  std::atomic<bool> cancelled{false};
  Thread consumer("consumer", [&] {
    try {
      loader.next();
    } catch (const CancelledError&) {
      cancelled = true;
    }
  });
  clock.wait_for_sleepers(1);
  Thread stopper("stopper", [&] { loader.stop(); });
  clock.advance(hours(1));
  stopper.join();
  consumer.join();
  // The batch itself may have ended the wait, if it was faster than the stop.
  const std::uint64_t next = cancelled ? 1 : 2;
  EXPECT_EQ(loader.next()->step(), next);
}

Dataset with_bad_samples(std::int64_t count, std::int64_t every) {
  return Dataset::range(count)
      .map(
          [every](std::int64_t x) {
            if (x % every == 0) throw std::runtime_error("bad luck");
            return x * 2;
          },
          {.name = "luck"})
      .map([](std::int64_t x) {
        if (x == 0) throw std::logic_error("a failed row must not go on");
        return x + 1;
      });
}

TEST(LoaderTest, SkippedSamplesLeaveTheirShareAndTheOthersKeepTheirPlace) {
  for (unsigned threads = 0; threads <= 2; ++threads) {
    LoaderOptions options;
    options.shares = {{3, 0, 3}};
    options.threads = threads;
    options.on_error = OnError::skip;
    options.skip_limit = 1000;
    Loader loader(with_bad_samples(100, 10).batch(16), options);
    std::vector<std::int64_t> seen;
    std::uint64_t steps = 0;
    while (const auto step = loader.next_step()) {
      ++steps;
      for (const Batch& share : *step) {
        EXPECT_EQ(share.valid_count(), share.rows());
        for (std::size_t row = 0; row < share.rows(); ++row) {
          const std::int64_t value = share.values<std::int64_t>()[row];
          EXPECT_EQ(value, static_cast<std::int64_t>(share.sample_id()[row]) * 2 + 1);
          seen.push_back(value / 2);
        }
      }
    }
    EXPECT_EQ(steps, 7U);
    EXPECT_EQ(seen.size(), 90U);
    EXPECT_TRUE(std::ranges::is_sorted(seen));
    ASSERT_EQ(loader.ledger().count(), 10U);
    EXPECT_EQ(loader.ledger().entries()[3].sample.number, 30U);
    EXPECT_THAT(loader.ledger().entries()[3].op, HasSubstr("luck"));
    EXPECT_THAT(loader.ledger().text(), HasSubstr("bad luck"));
  }
}

TEST(LoaderTest, TooManySkippedSamplesEndTheRunAndNameTheFirstTen) {
  const TempFolder folder;
  const std::string file = folder.path("ledger.jsonl");
  Loader loader(with_bad_samples(100, 5).batch(10),
                {.threads = 2, .on_error = OnError::skip, .ledger_file = file});
  try {
    while (loader.next()) {
    }
    FAIL() << "no error";
  } catch (const SampleError& error) {
    EXPECT_THAT(error.what(), HasSubstr("sample 45"));
    EXPECT_THAT(error.what(), HasSubstr(file));
  }
  const auto text = Io::real().read_text(file, 1 << 20);
  ASSERT_TRUE(text);
  EXPECT_EQ(std::ranges::count(*text, '\n'), 12);
}

TEST(LoaderTest, ATransientErrorIsRetriedAndThenThrown) {
  std::atomic<int> calls{0};
  const auto flaky = [&calls](int failures) {
    return Dataset::range(8)
        .map([&calls, failures](std::int64_t x) {
          if (x == 3 && ++calls <= failures)
            throw std::system_error(EIO, std::generic_category(), "disk");
          return x;
        })
        .batch(4);
  };
  Loader passes(flaky(2), {.threads = 2});
  EXPECT_EQ(ids_of_epoch(passes).size(), 8U);
  calls = 0;
  Loader stays(flaky(100), {.threads = 2, .on_error = OnError::skip});
  EXPECT_THROW(ids_of_epoch(stays), SampleError);
  EXPECT_EQ(calls, 4);
}

TEST(LoaderTest, ABlockFunctionThatThrowsLosesOnlyTheFailedRow) {
  Loader loader(Dataset::range(20)
                    .map(
                        [](const Block& in, Block& out) {
                          const auto x = in.column<std::int64_t>();
                          for (std::size_t i = 0; i < x.size(); ++i) {
                            if (x[i] == 7) throw std::runtime_error("seven");
                            out.column<std::int64_t>()[i] = x[i];
                          }
                        },
                        {.spec = ElementSpec::single(Dtype::i64)})
                    .batch(10),
                {.threads = 1, .on_error = OnError::skip});
  const auto ids = ids_of_epoch(loader);
  EXPECT_EQ(ids.size(), 19U);
  EXPECT_EQ(loader.ledger().entries().front().sample.number, 7U);
}

TEST(LoaderTest, DestructionFromAnyStateLeavesNoThreadBehind) {
  const Dataset dataset = Dataset::range(1000).shuffle().batch(3);
  for (int pulls = 0; pulls < 20; ++pulls) {
    Loader loader(dataset, {.threads = 2});
    for (int i = 0; i < pulls; ++i) loader.next();
  }
  const std::weak_ptr<Pool> pool = Pool::shared();
  EXPECT_TRUE(pool.expired());
}

TEST(LoaderTest, TwoLoadersShareOnePool) {
  Loader a(Dataset::range(100).batch(3));
  Loader b(Dataset::range(100).batch(3));
  a.next();
  const auto pool = Pool::shared();
  const long before = pool.use_count();
  b.next();
  EXPECT_EQ(pool.use_count(), before + 2) << "the second loader uses the same pool";
}

TEST(LoaderTest, AConsumerThatKeepsBatchesGetsNewSlabs) {
  Loader loader(Dataset::range(200).batch(10), {.threads = 2});
  std::vector<Batch> kept;
  while (auto batch = loader.next()) kept.push_back(*batch);
  for (std::size_t i = 0; i < kept.size(); ++i)
    EXPECT_EQ(kept[i].values<std::int64_t>()[0], static_cast<std::int64_t>(i) * 10);
}

TEST(LoaderTest, LookAheadStaysWithinItsBytes) {
  std::atomic<std::int64_t> made{0};
  const Dataset dataset = Dataset::range(4000)
                              .map([&made](std::int64_t x) {
                                ++made;
                                return x;
                              })
                              .batch(100);
  Loader loader(dataset, {.threads = 2});
  const std::uint64_t bytes = *loader.plan().batch_bytes();
  Loader tight(dataset, {.threads = 2, .lookahead_bytes = 3 * bytes});
  made = 0;
  for (std::int64_t taken = 1; tight.next(); ++taken)
    EXPECT_LE(made, (taken + 3) * 100) << "after " << taken << " batches";
}

TEST(LoaderTest, EveryAllocationThatFailsIsATypedErrorAndTheLoaderGoesOn) {
#ifndef PENSTOCK_FAULTS
  FAIL() << "this test needs a build with fault points";
#endif
  for (std::uint64_t nth = 1;; ++nth) {
    fault::disarm_all();
    Loader loader(Dataset::range(40).batch(4), {.threads = 2});
    fault::arm("slab.allocate", nth);
    std::size_t rows = 0;
    bool failed = false;
    while (true) {
      try {
        const auto batch = loader.next();
        if (!batch) break;
        rows += batch->rows();
      } catch (const ResourceError&) {
        failed = true;
      }
    }
    EXPECT_EQ(rows, 40U);
    if (!failed) break;
  }
  fault::disarm_all();
}

TEST(LoaderTest, DecisionsListEveryChangeOfTheLookAhead) {
  Loader loader(Dataset::range(100'000).shuffle().batch(16), {.threads = 2});
  EXPECT_TRUE(loader.decisions().empty()) << "nothing has run";
  loader.next();
  ASSERT_FALSE(loader.decisions().empty());
  EXPECT_THAT(loader.decisions().front(), HasSubstr("3 steps ahead"));
}

TEST(LoaderTest, SharesTogetherHoldTheStep) {
  const Dataset dataset = Dataset::range(10).batch(10);
  std::vector<std::size_t> sizes;
  std::vector<double> scales;
  for (std::uint32_t share = 0; share < 4; ++share) {
    Loader loader(dataset, {.shares = {{4, share, 1}}});
    const auto batch = loader.next();
    sizes.push_back(batch->rows());
    scales.push_back(batch->loss_scale());
    EXPECT_EQ(batch->global_valid(), 10U);
  }
  EXPECT_THAT(sizes, ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(scales, ElementsAre(1.2, 1.2, 0.8, 0.8));
}

TEST(LoaderTest, SeveralSharesNeedNextStep) {
  Loader loader(Dataset::range(10).batch(4), {.shares = {{2, 0, 2}}});
  EXPECT_THROW(loader.next(), ConfigError);
  EXPECT_EQ(loader.next_step()->size(), 2U);
}

TEST(LoaderTest, SingleSamplesAreRejectedWithARemedy) {
  try {
    const Loader loader(Dataset::range(3));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.remedy(), HasSubstr("batch"));
  }
}

TEST(LoaderTest, AnEndlessDatasetHasNoLengthButRuns) {
  Loader loader(Dataset::range(3).shuffle().repeat().batch(2), {.threads = 1});
  EXPECT_THROW(static_cast<void>(loader.size()), ConfigError);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(loader.next());
  EXPECT_EQ(loader.state().position, 200U);
}

TEST(LoaderTest, AFunctionMayUseAnotherLoader) {
  Loader loader(Dataset::range(6)
                    .map([](std::int64_t x) {
                      Loader inner(Dataset::range(x + 1).batch(2), {.threads = 0});
                      std::int64_t sum = 0;
                      while (auto batch = inner.next())
                        for (const std::int64_t value : batch->values<std::int64_t>()) sum += value;
                      return sum;
                    })
                    .batch(3),
                {.threads = 2});
  EXPECT_THAT(loader.next()->values<std::int64_t>(), ElementsAre(0, 1, 3));
  EXPECT_THAT(loader.next()->values<std::int64_t>(), ElementsAre(6, 10, 15));
}

TEST(LoaderTest, AFenceDelaysTheReuseOfASlab) {
  std::atomic<bool> passed{false};
  Loader loader(Dataset::range(40).batch(4), {.threads = 0});
  const std::byte* held = nullptr;
  {
    const auto batch = loader.next();
    held = (*batch)[""].raw().data();
    batch->set_fence([&] { return passed.load(); });
  }
  for (int i = 0; i < 3; ++i) EXPECT_NE((*loader.next())[""].raw().data(), held);
  passed = true;
  std::vector<Batch> kept;  // so that the ring needs all of its slabs
  bool reused = false;
  while (auto batch = loader.next()) {
    reused = reused || (*batch)[""].raw().data() == held;
    kept.push_back(*batch);
  }
  EXPECT_TRUE(reused);
}

}  // namespace
}  // namespace penstock
