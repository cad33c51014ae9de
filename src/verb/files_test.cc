#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "penstock/dataset.h"
#include "penstock/report_sink.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Collects reports during its lifetime.
class Reports {
 public:
  Reports()
      : before_(set_report_sink([this](const std::string& text) { texts.push_back(text); })) {}
  ~Reports() { set_report_sink(before_); }
  std::vector<std::string> texts;

 private:
  ReportSink before_;
};

TEST(DatasetFilesTest, SkippedEntriesOfAFolderAreReportedOnceInOneLine) {
  const TempFolder folder;
  folder.write("cat/1.png", "x");
  const Reports reports;
  const Dataset all = Dataset::image_folder(folder.path());
  EXPECT_THAT(reports.texts, IsEmpty());
  folder.write("cat/2.png", "");
  folder.write("cat/3.txt", "x");
  const Dataset some = Dataset::image_folder(folder.path()).shuffle().batch(1);
  EXPECT_THAT(reports.texts,
              ElementsAre(AllOf(HasSubstr(folder.path()), HasSubstr("1 images"),
                                HasSubstr("1 empty (cat/2.png), 1 of another extension"))));
  EXPECT_EQ(all.digests(), Dataset::image_folder(list_images(folder.path())).digests());
}

TEST(DatasetFilesTest, ClassNamesAreFoundFromAnyDatasetAfterTheFolder) {
  const TempFolder folder;
  folder.write("cat/1.png", "x");
  folder.write("dog/1.png", "x");
  EXPECT_THAT(Dataset::image_folder(folder.path()).shuffle().batch(2).class_names(),
              ElementsAre("cat", "dog"));
  EXPECT_THAT(Dataset::range(3).class_names(), IsEmpty());
}

TEST(DatasetFilesTest, DescribesItself) {
  const TempFolder folder;
  folder.write("cat/1.png", "x");
  EXPECT_THAT(Dataset::image_folder(folder.path(), {.with_path = true}).describe(),
              AllOf(HasSubstr("1 files, 1 classes"), HasSubstr("path: string")));
  EXPECT_THAT(Dataset::list_files(folder.path("**/*")).describe(), HasSubstr("1 files"));
  EXPECT_THAT(Dataset::from_paths({folder.path("cat/1.png")}).describe(),
              HasSubstr("{image: bytes[]}"));
}

TEST(DatasetFilesTest, ListedFilesCanBeRead) {
  const TempFolder folder;
  folder.write("a", "A");
  folder.write("b", "B");
  const Dataset texts = Dataset::list_files(folder.path("*")).map(read_file());
  EXPECT_EQ(texts.sample(1).tensor().text(), "B");
}

}  // namespace
}  // namespace penstock
