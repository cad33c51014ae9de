#include "source/record_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "penstock/error.h"
#include "penstock/report_sink.h"
#include "record/words_kind_for_tests.h"
#include "source/build_indexes.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class RecordFilesTest : public testing::Test {
 protected:
  RecordFilesTest() {
    before_ = set_report_sink([this](const std::string& text) { reports_.push_back(text); });
  }
  ~RecordFilesTest() override { set_report_sink(before_); }

  RecordFiles open(const std::string& pattern, const std::string& index) {
    RecordKind kind = words_kind();
    kind.scanner = [this] {
      ++scans_;
      return std::make_unique<WordScanner>();
    };
    RecordFileOptions options;
    options.index = index;
    return {Io::real(), kind, find_files(Io::real(), kind.word, {folder_.path(pattern)}), options};
  }
  static std::vector<std::string> places(const RecordFiles& files) {
    std::vector<std::string> all;
    for (std::uint64_t i = 0; i < files.size(); ++i) {
      const auto place = files.at(i);
      all.push_back(place.file->name + ":" + std::to_string(place.record) + "@" +
                    std::to_string(place.span.offset) + "+" + std::to_string(place.span.bytes));
    }
    return all;
  }

  const TempFolder folder_;
  std::atomic<int> scans_ = 0;
  std::vector<std::string> reports_;
  ReportSink before_;
};

TEST_F(RecordFilesTest, RecordsAreNumberedThroughAllFiles) {
  folder_.write("a", "|one;two");
  folder_.write("b", "|");
  folder_.write("c", "pre|three;");
  EXPECT_THAT(places(open("*", "memory")), ElementsAre("a:0@1+4", "a:1@5+3", "c:0@4+6"));
}

TEST_F(RecordFilesTest, AStoredIndexSavesTheScanUntilItsFileChanges) {
  const std::string path = folder_.write("data/a", "|one;two");
  folder_.make_folder("cache");
  const std::string cache = folder_.path("cache");
  const auto first = places(open("data/a", cache));
  EXPECT_EQ(scans_, 1);
  EXPECT_EQ(places(open("data/a", cache)), first);
  EXPECT_EQ(scans_, 1);
  std::ofstream(path, std::ios::binary) << "|six;ten";
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(open("data/a", cache).size(), 2U);
  EXPECT_EQ(scans_, 2);
  for (const auto& entry : std::filesystem::directory_iterator(cache))
    std::ofstream(entry.path(), std::ios::binary) << "garbage";
  EXPECT_EQ(open("data/a", cache).size(), 2U);
  EXPECT_EQ(scans_, 3);
}

TEST_F(RecordFilesTest, IndexesBesideFilesAreHiddenAndOnlyForLargeFiles) {
  folder_.write("small", "|one;two");
  folder_.write("large", "|" + std::string(std::size_t{5} << 20, 'x') + ";y");
  EXPECT_EQ(open("*", "beside").size(), 4U);
  EXPECT_TRUE(std::filesystem::exists(folder_.path(".large.pstkidx")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path(".small.pstkidx")));
  EXPECT_EQ(open("*", "beside").size(), 4U);
  EXPECT_EQ(scans_, 3);  // the small one twice
}

TEST_F(RecordFilesTest, WhereNothingCanBeWrittenTheIndexStaysInMemory) {
  folder_.write("a", "|one;two");
  EXPECT_EQ(open("a", folder_.path("no such folder")).size(), 2U);
  EXPECT_EQ(open("a", "/proc").size(), 2U);
  EXPECT_EQ(scans_, 2);
}

TEST_F(RecordFilesTest, TheRestOfADamagedFileIsOneRecordAndIsReported) {
  folder_.write("a", "|one;two;th!ree;four");
  folder_.write("b", "|five");
  EXPECT_THAT(places(open("*", "memory")),
              ElementsAre("a:0@1+4", "a:1@5+4", "a:2@9+11", "b:0@1+4"));
  ASSERT_EQ(reports_.size(), 1U);
  EXPECT_THAT(reports_[0], AllOf(HasSubstr(folder_.path("a")), HasSubstr("byte 9"),
                                 HasSubstr("an exclamation mark"), HasSubstr("11 bytes")));
}

TEST_F(RecordFilesTest, AFileThatCannotBeReadIsAnErrorThatNamesIt) {
  folder_.write("a", "|one");
  const auto found = find_files(Io::real(), "w", {folder_.path("a")});
  std::filesystem::remove(folder_.path("a"));
  try {
    const RecordFiles files(Io::real(), words_kind(), found, {});
    ADD_FAILURE() << "no error";
  } catch (const IoError& error) {
    EXPECT_EQ(error.where().file, folder_.path("a"));
  }
}

TEST_F(RecordFilesTest, AnExceptionFromProgressEndsTheBuilding) {
  folder_.write("a", "|one");
  RecordFileOptions options;
  options.progress = [](std::uint64_t, std::uint64_t) { throw std::runtime_error("enough"); };
  EXPECT_THROW(RecordFiles(Io::real(), words_kind(),
                           find_files(Io::real(), "w", {folder_.path("a")}), options),
               std::runtime_error);
}

TEST_F(RecordFilesTest, TheKindSeesTheFirstRecordsAndThePreface) {
  folder_.write("a", "head|");
  folder_.write("b", "pre|1;2;3;4;5;6");
  const FirstRecords first = open("*", "memory").first_records(Io::real(), words_kind());
  EXPECT_EQ(first.file, folder_.path("b"));
  EXPECT_EQ(first.preface, "pre|");
  EXPECT_THAT(first.records, ElementsAre("1;", "2;", "3;", "4;"));
  EXPECT_FALSE(first.whole_file);
}

TEST_F(RecordFilesTest, OtherNamesSizesOrCountsAreOtherData) {
  folder_.write("x/a", "|one;two");
  folder_.write("y/a", "|one;two");
  folder_.write("z/a", "|one;twx;");
  const auto digest_of = [&](const char* name) {
    Digest digest;
    open(name, "memory").identify(digest);
    return digest.value();
  };
  EXPECT_EQ(digest_of("x/a"), digest_of("y/a"));
  EXPECT_NE(digest_of("x/a"), digest_of("z/a"));
}

}  // namespace
}  // namespace penstock
