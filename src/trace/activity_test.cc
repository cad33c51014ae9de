#include "trace/activity.h"

#include <gtest/gtest.h>

namespace penstock::trace {
namespace {

TEST(ActivityTest, NamesTheLastOpEnteredAndTheSampleItWorksOn) {
  Activity activity;
  EXPECT_EQ(activity.op(), "");
  activity.doing("resize#1", 7, 3);
  EXPECT_EQ(activity.op(), "resize#1");
  EXPECT_EQ(activity.first_sample, 7U);
  EXPECT_EQ(activity.samples, 3U);
  activity.at_sample(8);
  EXPECT_EQ(activity.first_sample, 8U);
  EXPECT_EQ(activity.samples, 1U);
  activity.doing("crop#2", 9, 1);
  EXPECT_EQ(activity.op(), "crop#2");
}

TEST(ActivityTest, TheNameOfAnOpOutlivesTheOp) {
  Activity activity;
  {
    const std::string inner = "map(a function of an inner dataset)";
    activity.doing(inner, 0, 1);
  }
  EXPECT_EQ(activity.op(), "map(a function of an inner dataset)");
}

}  // namespace
}  // namespace penstock::trace
