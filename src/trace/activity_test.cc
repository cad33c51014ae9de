#include "trace/activity.h"

#include <gtest/gtest.h>

namespace penstock::trace {
namespace {

TEST(ActivityTest, RecordsTheLastOpUntilTheActivityIsReset) {
  Activity activity;
  const std::string resize = "resize#1";
  const std::string crop = "crop#2";
  doing(crop, 1, 1);  // not recorded
  Activity* const before = set_activity(&activity);
  doing(resize, 7, 3);
  EXPECT_EQ(activity.op(), resize);
  EXPECT_EQ(activity.first_sample, 7U);
  EXPECT_EQ(activity.samples, 3U);
  EXPECT_TRUE(at_sample(8));
  EXPECT_EQ(activity.first_sample, 8U);
  EXPECT_EQ(activity.samples, 1U);
  activity.cancelled = true;
  EXPECT_FALSE(at_sample(9));
  EXPECT_EQ(set_activity(before), &activity);
  doing(crop, 9, 1);
  EXPECT_EQ(activity.op(), resize);
}

TEST(ActivityTest, TheNameOfAnOpOutlivesTheOp) {
  Activity activity;
  Activity* const before = set_activity(&activity);
  {
    const std::string inner = "map(a function of an inner dataset)";
    doing(inner, 0, 1);
  }
  EXPECT_EQ(activity.op(), "map(a function of an inner dataset)");
  set_activity(before);
}

}  // namespace
}  // namespace penstock::trace
