#include "trace/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/measured_call.h"

namespace penstock::trace {
namespace {

using testing::ElementsAre;

class RecorderTest : public testing::Test {
 protected:
  /// A call of `title` that takes `duration` for `rows` rows from sample `first` on.
  void call(const std::string& title, Nanoseconds duration, std::uint64_t rows = 1,
            std::uint64_t first = 0) {
    const MeasuredCall measured({&recorder_, 7}, title, first, rows);
    measured.made(10 * rows);
    clock_.advance(duration);
  }

  VirtualClock clock_;
  Recorder recorder_{{.ops = {{.title = "b"}, {.title = "a"}}}, clock_, [](std::uint64_t id) {
                       return SampleName{std::to_string(id), "f"};
                     }};
};

TEST_F(RecorderTest, OpsAreAddedUpInTheOrderOfThePlan) {
  call("a", std::chrono::milliseconds(2), 4);
  call("b", std::chrono::milliseconds(1));
  call("a", std::chrono::milliseconds(4), 4);
  const Recording made = recorder_.totals();
  ASSERT_EQ(made.ops.size(), 2U);
  EXPECT_EQ(made.ops[0].title, "b");
  EXPECT_EQ(made.ops[1].title, "a");
  EXPECT_EQ(made.ops[1].calls, 2U);
  EXPECT_EQ(made.ops[1].rows, 8U);
  EXPECT_EQ(made.ops[1].bytes, 80U);
  EXPECT_DOUBLE_EQ(made.ops[1].seconds, 0.006);
  EXPECT_FALSE(made.ops[1].cpu) << "a virtual clock measures no CPU time";
}

TEST_F(RecorderTest, ShortOpsAreMeasuredInOneOfSixteenCallsAndScaled) {
  for (int i = 0; i < 1600; ++i) call("a", std::chrono::microseconds(1));
  const Recording made = recorder_.totals();
  EXPECT_EQ(made.ops[0].calls, 1600U);
  EXPECT_NEAR(made.ops[0].seconds, 1600e-6, 1e-9);
}

TEST_F(RecorderTest, TheSlowestCallsAreNamed) {
  for (std::uint64_t i = 0; i < 100; ++i) call("a", Nanoseconds(10'000 * (i % 50 + 1)), 1, i);
  const Recording made = recorder_.totals();
  ASSERT_EQ(made.slowest.size(), Recorder::kSlowMax);
  EXPECT_EQ(made.slowest[0].op, "a");
  EXPECT_TRUE(made.slowest[0].sample == "49" || made.slowest[0].sample == "99");
  EXPECT_EQ(made.slowest[0].file, "f");
  EXPECT_EQ(made.slowest[0].step, 7U);
  EXPECT_DOUBLE_EQ(made.slowest[0].seconds, 500e-6);
}

TEST_F(RecorderTest, PausesBeforeRetriesArePartOfTheOp) {
  {
    const MeasuredCall measured({&recorder_, 0}, "a", 0, 1);
    note_retry("EIO", std::chrono::milliseconds(5));
    clock_.advance(std::chrono::milliseconds(6));
  }
  const Recording made = recorder_.totals();
  EXPECT_DOUBLE_EQ(made.ops[0].retry, 0.005);
  EXPECT_EQ(made.reads.retried, 1U);
  EXPECT_THAT(made.reads.retries, ElementsAre("a: EIO"));
}

TEST_F(RecorderTest, WaitsAreDividedByWhatThreadsDid) {
  recorder_.requested(clock_.now());
  const Nanoseconds began = clock_.now();
  clock_.advance(std::chrono::milliseconds(10));
  recorder_.waiting({.busy = 2, .pulling = false, .at_limit = true, .at_bytes = true}, began,
                    clock_.now());
  const Nanoseconds then = clock_.now();
  clock_.advance(std::chrono::milliseconds(5));
  recorder_.waiting({.busy = 1, .pulling = true}, then, clock_.now());
  recorder_.waited(0, began, clock_.now());
  recorder_.delivered({.step = 0, .rows = 8, .now = 15'000'000});
  const Recording made = recorder_.totals();
  EXPECT_EQ(made.waits.count, 1U);
  EXPECT_DOUBLE_EQ(made.waits.seconds, 0.015);
  EXPECT_DOUBLE_EQ(made.waits.first, 0.015);
  EXPECT_DOUBLE_EQ(made.waits.busy, 0.025);
  EXPECT_DOUBLE_EQ(made.waits.one_busy, 0.005);
  EXPECT_DOUBLE_EQ(made.waits.at_bytes, 0.01);
  EXPECT_DOUBLE_EQ(made.waits.pulling, 0.005);
  EXPECT_NEAR(made.wall, 0.015, 1e-8);
  EXPECT_EQ(made.rows, 8U);
}

TEST_F(RecorderTest, AClockThatJumpsBackAddsNothing) {
  recorder_.waited(0, std::chrono::seconds(10), std::chrono::seconds(5));
  recorder_.task_ended(Kind::block, 0, 1, std::chrono::seconds(10), std::chrono::seconds(5));
  const Recording made = recorder_.totals();
  EXPECT_EQ(made.waits.longest, 0);
  EXPECT_EQ(made.work, 0);
}

TEST_F(RecorderTest, MoreOpsThanThereIsRoomForShareOneLine) {
  for (std::size_t i = 0; i < Recorder::kOpsMax + 10; ++i)
    call("op " + std::to_string(i), std::chrono::milliseconds(1));
  const Recording made = recorder_.totals();
  EXPECT_EQ(made.ops.size(), Recorder::kOpsMax);
  std::uint64_t calls = 0;
  for (const OpRecord& op : made.ops) calls += op.calls;
  EXPECT_EQ(calls, Recorder::kOpsMax + 10);
}

TEST_F(RecorderTest, ReplicasAreAddedUpByNumber) {
  recorder_.replica(1, "replica cpu:1", 0, 4, Nanoseconds(0), std::chrono::milliseconds(3),
                    std::chrono::milliseconds(5));
  recorder_.replica(1, "replica cpu:1", 1, 4, std::chrono::milliseconds(5),
                    std::chrono::milliseconds(10), std::chrono::milliseconds(10));
  const Recording made = recorder_.totals();
  ASSERT_EQ(made.replicas.size(), 2U);
  EXPECT_EQ(made.replicas[1].steps, 2U);
  EXPECT_EQ(made.replicas[1].rows, 8U);
  EXPECT_DOUBLE_EQ(made.replicas[1].busy, 0.008);
  EXPECT_DOUBLE_EQ(made.replicas[1].waited, 0.002);
}

TEST_F(RecorderTest, AReaderTakesEachEventOnce) {
  EventReader reader(recorder_.run());
  call("a", std::chrono::milliseconds(1));
  EXPECT_EQ(reader.take().size(), 1U);
  EXPECT_TRUE(reader.take().empty());
  for (int i = 0; i < 5000; ++i) call("a", std::chrono::milliseconds(1));
  const std::size_t taken = reader.take().size();
  EXPECT_LT(taken, 5000U);
  EXPECT_EQ(taken + reader.missed(), 5000U);
}

}  // namespace
}  // namespace penstock::trace
