#include "run/pass.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "op/long_block_op_for_tests.h"
#include "op/op.h"
#include "order/cut.h"

namespace penstock {
namespace {

struct Fixture {
  explicit Fixture(const Dataset& dataset, unsigned threads, Clock* clock = nullptr)
      : plan(std::make_shared<PlanData>(dataset, PlanOptions{}, 0)),
        layout(std::make_shared<BatchLayout>(plan->program.spec, 16)),
        ring(std::make_shared<BatchRing>(Allocator::heap(), 1 << 20)),
        pool(std::make_shared<Pool>(threads)) {
    RunSettings settings;
    settings.threads = threads;
    settings.shape.rows_max = 16;
    settings.clock = clock;
    run = std::make_shared<Pass>(plan, BatchShape{layout, ring}, RunStart{0, 0, plan->geometry, {}},
                                 settings);
    Pass::start(run, *pool);
  }
  ~Fixture() { run->stop(pool.get()); }

  std::shared_ptr<const PlanData> plan;
  std::shared_ptr<const BatchLayout> layout;
  std::shared_ptr<BatchRing> ring;
  std::shared_ptr<Pool> pool;
  std::shared_ptr<Pass> run;
};

TEST(PassTest, StepsArriveInOrderForAnyNumberOfThreads) {
  for (unsigned threads = 0; threads <= 8; ++threads) {
    Fixture fixture(Dataset::range(1000).shuffle().batch(16), threads);
    std::uint64_t step = 0;
    while (const auto batches = fixture.run->next()) EXPECT_EQ(batches->front().step(), step++);
    EXPECT_EQ(step, 63U);
    EXPECT_EQ(fixture.run->delivered(), 63U);
  }
}

/// Takes time for each row, on the test's clock.
class SlowOp final : public Op {
 public:
  SlowOp(VirtualClock& clock, Nanoseconds row) : clock_(clock), row_(row) {}
  [[nodiscard]] std::string word() const override { return "slow"; }
  [[nodiscard]] std::string describe() const override { return "slow"; }
  [[nodiscard]] ElementSpec output(const ElementSpec& in) const override { return in; }
  Result<void> run(const BlockView& in, const BlockView& out, const OpContext&) const override {
    std::memcpy(out.columns[0].data, in.columns[0].data, in.rows * in.columns[0].row_bytes);
    clock_.advance(row_ * in.rows);
    ++calls;
    return {};
  }
  mutable std::atomic<std::uint64_t> calls{0};

 private:
  VirtualClock& clock_;
  Nanoseconds row_;
};

// Every piece of a step calls each of its functions, and a call may be expensive.
TEST(PassTest, StepsThatFitIntoATaskAreNotSplit) {
  for (const int rows_of_a_task : {16, 17, 25, 31, 32, 53, 100, 1000}) {
    VirtualClock clock;
    const auto op = std::make_shared<SlowOp>(clock, Nanoseconds(100'000 / rows_of_a_task));
    Fixture fixture(Dataset::range(1600).map(OpCall(op)).batch(16), 1, &clock);
    while (fixture.run->next()) {
    }
    // The first step is split while its cost is unknown: a quarter, then the rest.
    EXPECT_EQ(op->calls, 100U + 1U) << rows_of_a_task;
  }
}

/// x * 2 + 1 of blocks; fails for a block that contains `bad`.
BlockFn affine(std::int64_t bad = -1) {
  return {[bad](const Block& from, Block& to) {
    const auto x = from.column<std::int64_t>();
    const auto y = to.column<std::int64_t>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] == bad) throw std::runtime_error("bad value");
      y[i] = 2 * x[i] + 1;
    }
  }};
}

std::shared_ptr<const Op> block_op(BlockFn fn) {
  return make_block_op(std::move(fn), {.spec = ElementSpec::single(Dtype::i64)});
}

/// The content of every step: its rows and their ids, or its error without the sample (a block
/// function does not say which row failed, and how a step is split into blocks depends on timing).
std::vector<std::string> steps_of(Pass& run) {
  std::vector<std::string> steps;
  while (true) {
    std::string text;
    try {
      const auto batches = run.next();
      if (!batches) return steps;
      for (const Batch& batch : *batches) {
        for (const std::int64_t x : batch.values<std::int64_t>()) text += std::to_string(x) + " ";
        for (const std::uint64_t id : batch.sample_id()) text += std::to_string(id) + " ";
      }
    } catch (const SampleError& error) {
      const std::string message = error.what();
      text = "step " + std::to_string(error.where().step.value_or(0)) + ": " +
             message.substr(0, message.find(" ["));
    }
    steps.push_back(std::move(text));
  }
}

TEST(PassTest, ShortStepsOfAFunctionThatPrefersLongBlocksAreComputedTogether) {
  VirtualClock clock;
  const auto op =
      std::make_shared<testing::LongBlockOp>(std::make_shared<SlowOp>(clock, Nanoseconds(100)));
  Fixture fixture(Dataset::range(16'000).map(OpCall(op)).batch(16), 1, &clock);
  std::uint64_t steps = 0;
  while (fixture.run->next()) ++steps;
  EXPECT_EQ(steps, 1000U);
  EXPECT_LT(op->calls, 100U);
}

TEST(PassTest, StepsComputedTogetherEqualStepsComputedAlone) {
  const auto pipelines = [](const std::shared_ptr<const Op>& op) {
    const Dataset some = Dataset::range(997).map(OpCall(op));
    return std::vector<Dataset>{
        some.batch(16),
        some.shuffle().batch(16),
        some.batch(16).repeat(3),
        some.shuffle().repeat(3).batch(7),
        some.batch(16).shuffle(),
        some.batch(16).shard(2, 1),
        some.batch(16, {.tail = Tail::wrap}),
        some.batch(16, {.tail = Tail::pad}),
        some.batch(5).concatenate(Dataset::range(50).map(OpCall(op)).batch(7)),
        some.map([](std::int64_t x, Rng& rng) { return x + std::int64_t(rng.integer(9)); })
            .batch(4),
    };
  };
  const auto alone = pipelines(block_op(affine()));
  const auto together = pipelines(std::make_shared<testing::LongBlockOp>(block_op(affine())));
  for (std::size_t i = 0; i < alone.size(); ++i) {
    Fixture expected(alone[i], 0);
    const std::vector<std::string> steps = steps_of(*expected.run);
    for (const unsigned threads : {1U, 2U, 5U}) {
      Fixture fixture(together[i], threads);
      EXPECT_TRUE(steps_of(*fixture.run) == steps) << "pipeline " << i << ", threads " << threads;
    }
  }
}

TEST(PassTest, AFailureOfStepsComputedTogetherAffectsItsStepOnly) {
  for (const std::int64_t bad : {0, 100, 640, 996}) {
    Fixture expected(Dataset::range(997).map(OpCall(block_op(affine(bad)))).batch(16), 0);
    const std::vector<std::string> steps = steps_of(*expected.run);
    EXPECT_NE(steps[static_cast<std::size_t>(bad) / 16].find("bad value"), std::string::npos);
    const auto op = std::make_shared<testing::LongBlockOp>(block_op(affine(bad)));
    Fixture fixture(Dataset::range(997).map(OpCall(op)).batch(16), 2);
    EXPECT_TRUE(steps_of(*fixture.run) == steps) << bad;
  }
}

TEST(PassTest, AFailureThatDoesNotRecurIsStillReported) {
  const auto raised = std::make_shared<std::atomic<bool>>(false);
  const BlockFn once{[raised](const Block& from, Block& to) {
    const auto x = from.column<std::int64_t>();
    const auto y = to.column<std::int64_t>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] == 500 && !raised->exchange(true)) throw std::runtime_error("only once");
      y[i] = x[i];
    }
  }};
  const auto op = std::make_shared<testing::LongBlockOp>(block_op(once));
  Fixture fixture(Dataset::range(997).map(OpCall(op)).batch(16), 1);
  std::size_t failed = 0;
  for (const std::string& step : steps_of(*fixture.run))
    failed += step.find("only once") != std::string::npos ? 1 : 0;
  EXPECT_EQ(failed, 1U);
}

/// The exception of an interpreter that exits.
struct Exit : std::runtime_error, MustRaise {
  using std::runtime_error::runtime_error;
};

TEST(PassTest, AnExitExceptionIsRaisedWithoutASecondCall) {
  const auto raised = std::make_shared<std::atomic<bool>>(false);
  const BlockFn once{[raised](const Block& from, Block& to) {
    const auto x = from.column<std::int64_t>();
    const auto y = to.column<std::int64_t>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] == 500 && !raised->exchange(true)) throw Exit("asked to end");
      y[i] = x[i];
    }
  }};
  const auto op = std::make_shared<testing::LongBlockOp>(block_op(once));
  Fixture fixture(Dataset::range(997).map(OpCall(op)).batch(16), 1);
  std::size_t failed = 0;
  for (const std::string& step : steps_of(*fixture.run))
    failed += step.find("asked to end") != std::string::npos ? 1 : 0;
  EXPECT_EQ(failed, 1U);
}

TEST(PassTest, SlabsAreReusedAfterTheirBatchesAreDestroyed) {
  Fixture fixture(Dataset::range(160).batch(16), 2);
  std::optional<StepBatches> kept = fixture.run->next();
  while (fixture.run->next()) {
  }
  const std::size_t before = fixture.ring->spare_bytes();
  kept.reset();
  EXPECT_EQ(fixture.ring->spare_bytes(), before + fixture.layout->bytes);
}

TEST(PassTest, AfterStopNextIsCancelled) {
  Fixture fixture(Dataset::range(1000).batch(16), 2);
  fixture.run->stop(fixture.pool.get());
  EXPECT_TRUE(fixture.run->stopped());
  try {
    while (fixture.run->next()) {
    }
    FAIL() << "all steps were delivered although the run was stopped";
  } catch (const CancelledError&) {
  }
}

TEST(PassTest, NoThreadIsInsideAfterStop) {
  std::atomic<int> inside{0};
  for (int round = 0; round < 50; ++round) {
    Fixture fixture(Dataset::range(1000)
                        .map([&inside](std::int64_t x) {
                          ++inside;
                          --inside;
                          return x;
                        })
                        .batch(16),
                    4);
    for (int i = 0; i < round % 5; ++i) fixture.run->next();
    fixture.run->stop(fixture.pool.get());
    EXPECT_EQ(inside, 0);
  }
}

TEST(PassTest, TheBudgetIsReturned) {
  const std::uint64_t before = ByteBudget::process().used();
  {
    Fixture fixture(Dataset::range(1000).batch(16), 2);
    fixture.run->next();
  }
  EXPECT_EQ(ByteBudget::process().used(), before);
}

}  // namespace
}  // namespace penstock
