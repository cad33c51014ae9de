#include "run/pass_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

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
    settings.mold.rows_max = 16;
    settings.clock = clock;
    run = std::make_shared<PassRun>(plan, Mold{layout, ring}, RunStart{0, 0, plan->geometry, {}},
                                    settings);
    PassRun::start(run, *pool);
  }
  ~Fixture() { run->stop(pool.get()); }

  std::shared_ptr<const PlanData> plan;
  std::shared_ptr<const BatchLayout> layout;
  std::shared_ptr<BatchRing> ring;
  std::shared_ptr<Pool> pool;
  std::shared_ptr<PassRun> run;
};

TEST(PassRunTest, StepsComeInOrderForAnyNumberOfThreads) {
  for (unsigned threads = 0; threads <= 8; ++threads) {
    Fixture fixture(Dataset::range(1000).shuffle().batch(16), threads);
    std::uint64_t step = 0;
    while (const auto batches = fixture.run->next()) EXPECT_EQ(batches->front().step(), step++);
    EXPECT_EQ(step, 63U);
    EXPECT_EQ(fixture.run->delivered(), 63U);
  }
}

/// Takes its time for each row, on a clock of the test's.
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

// Every piece of a step is a call of each function in it, which may be dear to enter.
TEST(PassRunTest, StepsThatFitIntoATaskAreNotSplit) {
  for (const int rows_of_a_task : {16, 17, 25, 31, 32, 53, 100, 1000}) {
    VirtualClock clock;
    const auto op = std::make_shared<SlowOp>(clock, Nanoseconds(100'000 / rows_of_a_task));
    Fixture fixture(Dataset::range(1600).map(OpCall(op)).batch(16), 1, &clock);
    while (fixture.run->next()) {
    }
    // The first step is split while its cost is not known: a quarter, then the rest.
    EXPECT_EQ(op->calls, 100U + 1U) << rows_of_a_task;
  }
}

TEST(PassRunTest, SlabsComeBackWhenTheirBatchesGo) {
  Fixture fixture(Dataset::range(160).batch(16), 2);
  std::optional<StepBatches> kept = fixture.run->next();
  while (fixture.run->next()) {
  }
  const std::size_t before = fixture.ring->spare_bytes();
  kept.reset();
  EXPECT_EQ(fixture.ring->spare_bytes(), before + fixture.layout->bytes);
}

TEST(PassRunTest, AfterStopNextIsCancelled) {
  Fixture fixture(Dataset::range(1000).batch(16), 2);
  fixture.run->stop(fixture.pool.get());
  EXPECT_TRUE(fixture.run->stopped());
  try {
    while (fixture.run->next()) {
    }
    FAIL() << "all steps came although the run was stopped";
  } catch (const CancelledError&) {
  }
}

TEST(PassRunTest, NoThreadIsInsideAfterStop) {
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

TEST(PassRunTest, BudgetIsGivenBack) {
  const std::uint64_t before = ByteBudget::process().used();
  {
    Fixture fixture(Dataset::range(1000).batch(16), 2);
    fixture.run->next();
  }
  EXPECT_EQ(ByteBudget::process().used(), before);
}

}  // namespace
}  // namespace penstock
