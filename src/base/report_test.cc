#include "base/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "penstock/report_sink.h"

namespace penstock {
namespace {

using testing::ElementsAre;

class ReportTest : public testing::Test {
 protected:
  ReportTest() : before_(set_report_sink({})) {}
  ~ReportTest() override { set_report_sink(before_); }

 private:
  ReportSink before_;
};

TEST_F(ReportTest, GoesToStderrWithoutASink) {
  testing::internal::CaptureStderr();
  report("the disk is slow");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "penstock: the disk is slow\n");
}

TEST_F(ReportTest, GoesToTheSinkThatWasSetLast) {
  std::vector<std::string> first;
  std::vector<std::string> second;
  EXPECT_FALSE(set_report_sink([&](const std::string& text) { first.push_back(text); }));
  report("one");
  const ReportSink before =
      set_report_sink([&](const std::string& text) { second.push_back(text); });
  report("two");
  before("three");
  EXPECT_THAT(first, ElementsAre("one", "three"));
  EXPECT_THAT(second, ElementsAre("two"));
}

TEST_F(ReportTest, ASinkMayReportAndReplaceTheSink) {
  std::vector<std::string> seen;
  set_report_sink([&](const std::string& text) {
    seen.push_back(text);
    set_report_sink([&](const std::string& inner) { seen.push_back("inner " + inner); });
    report("again");
  });
  report("once");
  EXPECT_THAT(seen, ElementsAre("once", "inner again"));
}

}  // namespace
}  // namespace penstock
