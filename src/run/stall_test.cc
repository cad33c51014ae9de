#include "run/stall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "run/plan_for_tests.h"

namespace penstock {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class StallTest : public ::testing::Test {
 protected:
  std::shared_ptr<const PlanData> plan_ = testing::plan_of(Dataset::range(100).batch(10));
  Task task_;

  std::string text(Nanoseconds now = seconds(7)) { return doing(task_, plan_->program, now); }
};

TEST_F(StallTest, AComputingThreadIsDescribedByOpSampleAndPlace) {
  task_.began = seconds(5);
  task_.first_step = 3;
  task_.first_share = 1;
  task_.first_row = 4;
  EXPECT_EQ(text(), "step 3, share 1, from row 4 for 2.0 s") << "before the first op";
  task_.activity.doing("map#0", 34, 1);
  EXPECT_EQ(text(), "map#0 with sample 34 of source 0 (step 3, share 1, from row 4) for 2.0 s");
  task_.activity.samples = 6;
  EXPECT_THAT(text(), HasSubstr("sample 34 of source 0 and 5 more ("));
}

TEST_F(StallTest, PullingLearningHelpingAndRequestingThreadsAreDescribed) {
  task_.first_step = 3;
  task_.kind = Task::Kind::pull;
  EXPECT_EQ(text(), "the stream, at element 0 (pulling step 3) for 7.0 s");
  task_.activity.doing("filter#1", 0, 0);
  EXPECT_EQ(text(), "filter#1, at element 0 (pulling step 3) for 7.0 s");
  task_.kind = Task::Kind::learn;
  EXPECT_THAT(text(),
              HasSubstr("filter#1, at sample 0 (the first sample shows the fields; step 3)"));
  task_.kind = Task::Kind::help;
  EXPECT_THAT(text(), HasSubstr("(helping to pull step 3)"));
  task_.kind = Task::Kind::rows;
  task_.asked_index = 8;
  EXPECT_EQ(text(), "filter#1, get(8) (step 3) for 7.0 s");
}

TEST_F(StallTest, TheReportNamesTheOldestStepFirst) {
  Task newer;
  newer.first_step = 9;
  task_.first_step = 3;
  const std::vector<const Task*> tasks{&newer, &task_};
  const StallReport report =
      stall_report({"train", 2, 3, seconds(4), 5, 1}, tasks, *plan_, seconds(7));
  EXPECT_EQ(report.head, "dataset train: no batch for 4.0 s: epoch 2, step 3, shares from 0 of 1");
  ASSERT_EQ(report.lines.size(), 2U);
  EXPECT_EQ(report.lines[0].text, "waits for step 3, share 0, from row 0 for 7.0 s");
  EXPECT_EQ(report.lines[1].text, "another thread: step 9, share 0, from row 0 for 7.0 s");
  EXPECT_EQ(report.tail, "\n  5 steps are in flight, 1 of them complete after it");
}

TEST_F(StallTest, AWaitWithoutAThreadIsReported) {
  const StallReport report = stall_report({"", 0, 0, seconds(4), 0, 0}, {}, *plan_, seconds(7));
  EXPECT_THAT(report.text(), HasSubstr("no batch for 4.0 s: epoch 0, step 0"));
  EXPECT_THAT(report.text(), HasSubstr("no thread works on it: all are busy with other loaders"));
}

TEST_F(StallTest, EachThreadStillInsideHasALine) {
  const std::vector<const Task*> tasks{&task_};
  const auto lines = thread_lines(tasks, plan_->program, seconds(7));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].text, "in step 0, share 0, from row 0 for 7.0 s");
}

TEST(AbandonedTextTest, AbandonedThreadsAreCountedInSingularAndPlural) {
  EXPECT_EQ(abandoned_text(1), "1 thread did not return and was abandoned");
  EXPECT_EQ(abandoned_text(2), "2 threads did not return and were abandoned");
}

TEST(StallWatchTest, ThePauseBeforeTheNextReportDoubles) {
  StallWatch watch(seconds(10));
  EXPECT_FALSE(watch.is_due(seconds(9)));
  EXPECT_TRUE(watch.is_due(seconds(11)));
  EXPECT_FALSE(watch.is_due(seconds(21)));
  EXPECT_TRUE(watch.is_due(seconds(22)));
  EXPECT_FALSE(watch.is_due(seconds(43)));
}

}  // namespace
}  // namespace penstock
