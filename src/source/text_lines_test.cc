#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "penstock/error.h"
#include "penstock/loader.h"
#include "penstock/text_files.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class TextLinesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "text_lines_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
    return folder_ + "/" + name;
  }

  std::string folder_;
};

std::vector<std::string> lines_of(const Dataset& dataset) {
  std::vector<std::string> lines;
  for (std::uint64_t i = 0; i < dataset.cardinality().count(); ++i)
    lines.emplace_back(dataset.sample(i).tensor().text());
  return lines;
}

TEST_F(TextLinesTest, LinesAreThoseBetweenLineEnds) {
  EXPECT_THAT(lines_of(from_text({write("a", "one\ntwo\r\n\nfour\rstill four\nlast")})),
              ElementsAre("one", "two", "", "four\rstill four", "last"));
  EXPECT_THAT(lines_of(from_text({write("b", "one\n")})), ElementsAre("one"));
  EXPECT_THAT(lines_of(from_text({write("d", "\xEF\xBB\xBFmarked\ntwo")})),
              ElementsAre("marked", "two"));
  EXPECT_EQ(from_text({write("c", "")}).cardinality().count(), 0U);
}

TEST_F(TextLinesTest, FilesFollowEachOtherAndPatternsAreSorted) {
  write("2.txt", "c\n");
  write("1.txt", "a\nb\n");
  write("0.txt", "");
  const std::string first = write("first", "x\n");
  EXPECT_THAT(lines_of(from_text({first, folder_ + "/*.txt", first})),
              ElementsAre("x", "a", "b", "c", "x"));
}

TEST_F(TextLinesTest, ALineThatIsNotUtf8IsNamedOrSkipped) {
  const Dataset lines = from_text({write("bad.txt", "\xC3\xA4hm\n\xFF\nb\n")}).batch(3);
  Loader strict(lines, {.threads = 0});
  EXPECT_THAT([&] { (void)strict.next(); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr("bad.txt"), HasSubstr("line 2"))));
  Loader loader(lines, {.threads = 1, .on_error = OnError::skip});
  EXPECT_EQ(loader.next()->rows(), 2U);
}

TEST_F(TextLinesTest, MissingFilesAreNamed) {
  EXPECT_THAT([&] { (void)from_text({folder_ + "/*.txt"}); },
              ThrowsMessage<ConfigError>(HasSubstr("*.txt")));
  EXPECT_THAT([] { (void)from_text({}); }, ThrowsMessage<ConfigError>(HasSubstr("no paths")));
}

TEST_F(TextLinesTest, AStateKnowsOtherText) {
  const Dataset one = from_text({write("one", "a\nb\nc\n")});
  const Dataset other = from_text({write("other", "a\nb\nd\n")});
  EXPECT_NE(one.digests().order, other.digests().order);
}

}  // namespace
}  // namespace penstock
