#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/temp_folder_for_tests.h"
#include "penstock/error.h"
#include "penstock/io.h"
#include "penstock/loader.h"
#include "penstock/report.h"
#include "trace/recording.h"

namespace penstock {
namespace {

using testing::HasSubstr;

Report report_of_a_loader() {
  Loader loader(Dataset::range(100).batch(10));
  while (loader.next()) {
  }
  return loader.report();
}

TEST(SaveReportTest, ATraceIsReadAsTheSameReport) {
  const TempFolder folder;
  const Report report = report_of_a_loader();
  EXPECT_EQ(report.steps, 10U);
  EXPECT_EQ(report.rows, 100U);
  report.save(folder.path() + "/run.json");
  const Report again = read_report(folder.path() + "/run.json");
  EXPECT_EQ(again.str(), report.str());
  EXPECT_EQ(again.plan, report.plan);
  EXPECT_THAT(again.plan, HasSubstr("range"));
}

TEST(SaveReportTest, APageContainsEverythingAndNoForeignMarkup) {
  const TempFolder folder;
  Report report = report_of_a_loader();
  report.verdict = "</script><img src=x>";
  report.save(folder.path() + "/run.html");
  const std::string page = *Io::real().read_text(folder.path() + "/run.html", 1U << 30);
  EXPECT_THAT(page, testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(page, testing::EndsWith("</html>\n"));
  EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003cimg src=x>"));
  EXPECT_THAT(page, testing::Not(HasSubstr("<img")));
  EXPECT_THAT(page, testing::Not(HasSubstr("https:")));
}

TEST(SaveReportTest, OtherExtensionsAndFoldersThatAreNotThereAreRefused) {
  const Report report = report_of_a_loader();
  EXPECT_THROW(report.save("run.pdf"), ConfigError);
  EXPECT_THROW(report.save("/nowhere/run.html"), ResourceError);
  EXPECT_THROW(report.save("/nowhere/run.json"), ResourceError);
  EXPECT_THROW(Report().save("run.html"), ConfigError);
}

TEST(SaveReportTest, EachRunLeavesATraceInTheFolderOfTheLoader) {
  const TempFolder folder;
  const std::string runs = folder.path() + "/runs";
  {
    Loader loader(Dataset::range(100).batch(10), {.report_dir = runs});
    for (int epoch = 0; epoch < 2; ++epoch)
      while (loader.next()) {
      }
    (void)loader.next();  // the third one is left
  }
  const Report second = read_report(runs + "/epoch-1.json");
  EXPECT_EQ(second.epoch, 1U);
  EXPECT_EQ(second.rows, 100U);
  EXPECT_EQ(second.cut, "");
  EXPECT_FALSE(second.recording->events.empty());
  EXPECT_EQ(read_report(runs + "/epoch-2.json").cut, "the epoch was left before its end");
}

TEST(SaveReportTest, AFolderThatCannotBeCreatedIsAnErrorAtTheFirstStep) {
  Loader loader(Dataset::range(100).batch(10), {.report_dir = "/proc/nowhere"});
  for (int i = 0; i < 3; ++i) EXPECT_THROW((void)loader.next(), ResourceError) << "each time";
}

}  // namespace
}  // namespace penstock
