#include "source/find_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temp_folder_for_tests.h"
#include "penstock/error.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Property;
using testing::ThrowsMessage;

TEST(ExpandBracesTest, RangesKeepTheirZerosAndListsTheirOrder) {
  EXPECT_THAT(expand_braces("w", "a-{08..11}.tar"),
              ElementsAre("a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"));
  EXPECT_THAT(expand_braces("w", "{val,train}/{1..2}"),
              ElementsAre("val/1", "val/2", "train/1", "train/2"));
  EXPECT_THAT(expand_braces("w", "{9..10}"), ElementsAre("9", "10"));
  EXPECT_THAT(expand_braces("w", "plain"), ElementsAre("plain"));
  EXPECT_THAT(expand_braces("w", "open{1,2"), ElementsAre("open{1,2"));
}

TEST(ExpandBracesTest, MoreThanAMillionNamesAreAnError) {
  EXPECT_THROW(expand_braces("w", "{0..999}{0..999}{0..9}"), ConfigError);
  EXPECT_THROW(expand_braces("w", "{0..99999999999}"), ConfigError);
  EXPECT_THROW(expand_braces("w", "{3..1}"), ConfigError);
}

class FindFilesTest : public testing::Test {
 protected:
  std::vector<std::string> found(const std::vector<std::string>& names) {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(folder_.path(name));
    std::vector<std::string> files;
    for (const FoundFile& file : find_files(Io::real(), "from_words", paths))
      files.push_back(file.path.substr(folder_.path().size() + 1));
    return files;
  }
  const TempFolder folder_;
};

TEST_F(FindFilesTest, FilesFollowThePathsAndThoseOfAPatternTheirNames) {
  for (const char* name : {"b.x", "a.x", "c.y", "a.x~", ".a.x.pstkidx"}) folder_.write(name, "1");
  EXPECT_THAT(found({"c.y", "*.x"}), ElementsAre("c.y", "a.x", "b.x"));
  EXPECT_THAT(found({"{b,a}.x"}), ElementsAre("b.x", "a.x"));
  EXPECT_THAT(found({"*"}), ElementsAre("a.x", "a.x~", "b.x", "c.y"));
}

TEST_F(FindFilesTest, AnExistingFileIsMeantWhateverItsName) {
  folder_.write("data[1].{a,b}", "1");
  EXPECT_THAT(found({"data[1].{a,b}"}), ElementsAre("data[1].{a,b}"));
}

TEST_F(FindFilesTest, PathsWithoutAFileAreErrorsThatNameThem) {
  folder_.write("dir/a", "1");
  folder_.write("s-0", "1");
  const auto message = [](const char* text) { return ThrowsMessage<ConfigError>(HasSubstr(text)); };
  EXPECT_THAT([&] { found({"missing"}); }, message("missing"));
  EXPECT_THAT([&] { found({"dir"}); }, message("is a folder"));
  EXPECT_THAT([&] { found({"s-{0..1}"}); }, message("s-1"));
  EXPECT_THAT([&] { find_files(Io::real(), "w", {}); }, message("no paths"));
  EXPECT_THAT([&] { find_files(Io::real(), "w", {""}); }, message("not a path"));
}

TEST_F(FindFilesTest, TheSharedFolderEndsAtASlash) {
  EXPECT_EQ(shared_folder({"a/b/one", "a/b/other"}), "a/b/");
  EXPECT_EQ(shared_folder({"one", "other"}), "");
  EXPECT_EQ(shared_folder({"/x/y"}), "/x/");
}

}  // namespace
}  // namespace penstock
