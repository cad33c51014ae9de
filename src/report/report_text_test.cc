#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/report.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::Not;

Report some_report() {
  Report report;
  report.epoch = 3;
  report.steps = 1200;
  report.rows = 76'800;
  report.wall_seconds = 31.2;
  report.wait_seconds = 11.9;
  report.verdict =
      "Training waited 38 % of the time for input: decode takes 71 % of the work and "
      "both threads are busy.";
  report.input_rows_per_second = 2462;
  report.consumer_rows_per_second = 3979;
  report.ops = {{.name = "decode",
                 .calls = 76'800,
                 .rows = 76'800,
                 .seconds = 44.2,
                 .share = 0.71,
                 .p50 = 560e-6,
                 .p99 = 1.2e-3,
                 .bytes = 943'718'400}};
  return report;
}

TEST(ReportTextTest, TheVerdictComesBeforeTheNumbers) {
  EXPECT_EQ(some_report().str(),
            "epoch 3: 1,200 steps, 76,800 samples in 31 s; waited 12 s (38 %)\n"
            "Training waited 38 % of the time for input: decode takes 71 % of the work and both "
            "threads are busy.\n"
            "input: up to 2,462 samples/s; training: up to 3,979 samples/s\n\n"
            "op           time  share       p50       p99      samples    bytes\n"
            "decode       44 s   71 %    560 us    1.2 ms       76,800   944 MB");
}

TEST(ReportTextTest, ListsAreShownUpToAFewLines) {
  Report report = some_report();
  report.decisions.assign(20, "3 steps ahead");
  report.skipped = 2;
  report.what_if = {{"threads=4", 0.3, "4 threads instead of 2 would save about 30 %."}};
  report.slowest = {{"decode", "17 of source 0", "a/big.png", 1, 5, 0.25}};
  report.replicas = {{"replica cpu:0", 10, 1, 0.5}};
  const std::string text = report.str();
  EXPECT_THAT(text, HasSubstr("and 12 more"));
  EXPECT_THAT(text, HasSubstr("2 samples skipped, 0 retried"));
  EXPECT_THAT(text, HasSubstr("250 ms in decode: sample 17 of source 0 (a/big.png), step 5"));
  EXPECT_THAT(text, HasSubstr("replica cpu:0: 10 samples, computed 1.00 s, waited for others"));
  EXPECT_THAT(text, HasSubstr("4 threads instead of 2 would save about 30 %."));
}

TEST(ReportTextTest, AComparisonSaysWhatChanged) {
  const Report before = some_report();
  Report after = some_report();
  after.wall_seconds = 20.8;
  after.wait_seconds = 1;
  after.ops[0].seconds = 22.1;
  after.ops.push_back({.name = "flip", .rows = 10, .seconds = 1e-5});
  const std::string text = compare_reports(before, after);
  EXPECT_THAT(text, HasSubstr("samples/s: 2,462 before, 3,692 after (50 % more)"));
  EXPECT_THAT(text, HasSubstr("waiting for input: 38 % before, 5 % after"));
  EXPECT_THAT(text, HasSubstr("decode: 576 us a sample before, 288 us after (50 % less)"));
  EXPECT_THAT(text, HasSubstr("flip: new, 1 us a sample"));
  EXPECT_THAT(compare_reports(before, before), Not(HasSubstr("decode:")));
  EXPECT_THAT(compare_reports(after, before), HasSubstr("flip: no longer there"));
}

}  // namespace
}  // namespace penstock
