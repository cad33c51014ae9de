#include "report/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/loader.h"
#include "trace/trace.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using trace::Kind;

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(RunReportTest, AddsUpTheEventsOfItsRunByKind) {
  const std::uint32_t run = trace::new_run();
  const std::uint32_t other = trace::new_run();
  trace::record({Kind::block, run, 30, 0, 0, 2 * kSecond});
  trace::record({Kind::pull, run, 10, 0, kSecond, 2 * kSecond});
  trace::record({Kind::ready, run, 40, 0, 0, 5 * kSecond});
  trace::record({Kind::waited, run, 0, 0, 2 * kSecond, 2 * kSecond + kSecond / 2});
  trace::record({Kind::delivered, run, 40, 0, 3 * kSecond, 3 * kSecond});
  trace::record({Kind::delivered, run, 24, 1, 3 * kSecond, 3 * kSecond});
  trace::record({Kind::delivered, other, 99, 0, 0, kSecond});
  const Report report = report_of_run(run, 7, {"because"});
  EXPECT_EQ(report.epoch, 7U);
  EXPECT_EQ(report.steps, 2U);
  EXPECT_EQ(report.rows, 64U);
  EXPECT_EQ(report.waits, 1U);
  EXPECT_DOUBLE_EQ(report.wait_seconds, 0.5);
  EXPECT_EQ(report.tasks, 2U);
  EXPECT_DOUBLE_EQ(report.work_seconds, 3);
  EXPECT_THAT(report.decisions, ElementsAre("because"));
}

TEST(RunReportTest, TheTextIsALineOfNumbersAndALineForEachDecision) {
  Report report;
  report.epoch = 3;
  report.steps = 2;
  report.rows = 64;
  report.waits = 1;
  report.wait_seconds = 0.5;
  report.tasks = 4;
  report.work_seconds = 1.25;
  EXPECT_EQ(report.str(), "epoch 3: steps 2, rows 64; waits 1, 0.500 s; tasks 4, 1.250 s of work");
  report.decisions = {"2 steps ahead, 8 rows a task: start", "3 steps ahead"};
  EXPECT_EQ(report.str(),
            "epoch 3: steps 2, rows 64; waits 1, 0.500 s; tasks 4, 1.250 s of work\n"
            "  2 steps ahead, 8 rows a task: start\n"
            "  3 steps ahead");
}

TEST(RunReportTest, ALoaderReportsWhatItDelivered) {
  Loader loader(Dataset::range(50).batch(8));
  EXPECT_EQ(loader.report().steps, 0U);
  while (loader.next()) {
  }
  const Report report = loader.report();
  EXPECT_EQ(report.steps, 7U);
  EXPECT_EQ(report.rows, 50U);
  EXPECT_GE(report.tasks, 1U);
  EXPECT_EQ(report.decisions, loader.decisions());
  EXPECT_EQ(report.epoch, loader.epoch());
}

}  // namespace
}  // namespace penstock
