#include "source/glob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NameMatchesTest, StarsQuestionMarksAndSetsMatch) {
  EXPECT_TRUE(name_matches("*.png", "a.png"));
  EXPECT_TRUE(name_matches("*", ""));
  EXPECT_TRUE(name_matches("a*b*c", "a1b2b3c"));
  EXPECT_FALSE(name_matches("a*b*c", "a1b2b3"));
  EXPECT_TRUE(name_matches("shard-???.tar", "shard-012.tar"));
  EXPECT_FALSE(name_matches("?", ""));
  EXPECT_TRUE(name_matches("[a-c]x", "bx"));
  EXPECT_FALSE(name_matches("[!a-c]x", "bx"));
  EXPECT_TRUE(name_matches("[]-]", "]"));
  EXPECT_TRUE(name_matches("[a-]", "-"));
  EXPECT_TRUE(name_matches("[ab", "[ab"));
  EXPECT_TRUE(name_matches("\\*", "*"));
  EXPECT_FALSE(name_matches("\\*", "x"));
  EXPECT_TRUE(name_matches("\xff*", "\xff\xfe"));
}

TEST(NameMatchesTest, ManyStarsTakeLinearTime) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(name_matches(pattern + "b", std::string(5000, 'a')));
}

class ListMatchingTest : public testing::Test {
 protected:
  ListMatchingTest() {
    for (const char* name : {"a/1.png", "a/2.jpg", "a/deep/er/3.png", "b/4.png", "b/.hidden.png",
                             ".git/5.png", "6.png", "a-b/7.png"})
      folder_.write(name, "x");
    folder_.link("b/loop", "..");
    folder_.link("b/8.png", "4.png");
  }
  [[nodiscard]] std::vector<std::string> list(const std::string& pattern,
                                              bool hidden = false) const {
    const FileTable files = list_matching(Io::real(), folder_.path(pattern), hidden);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < files.size(); ++i)
      names.push_back(files.path(i).substr(folder_.path().size() + 1));
    return names;
  }
  TempFolder folder_;
};

TEST_F(ListMatchingTest, WildcardsStayWithinAName) {
  EXPECT_THAT(list("*.png"), ElementsAre("6.png"));
  EXPECT_THAT(list("*/*.png"), ElementsAre("a-b/7.png", "a/1.png", "b/4.png", "b/8.png"));
  EXPECT_THAT(list("a/[12].*"), ElementsAre("a/1.png", "a/2.jpg"));
}

TEST_F(ListMatchingTest, TwoStarsMatchAnyFoldersAndFollowNoLinks) {
  EXPECT_THAT(list("**/*.png"), ElementsAre("6.png", "a-b/7.png", "a/1.png", "a/deep/er/3.png",
                                            "b/4.png", "b/8.png"));
  EXPECT_THAT(list("a/**"), ElementsAre("a/1.png", "a/2.jpg", "a/deep/er/3.png"));
  EXPECT_THAT(list("**/deep/**/*.png"), ElementsAre("a/deep/er/3.png"));
  EXPECT_THAT(list("**/**/**/3.png"), ElementsAre("a/deep/er/3.png"));
}

TEST_F(ListMatchingTest, HiddenNamesMatchOnlyOnRequest) {
  EXPECT_THAT(list("b/*.png", true), ElementsAre("b/.hidden.png", "b/4.png", "b/8.png"));
  EXPECT_THAT(list("b/.h*"), ElementsAre("b/.hidden.png"));
  EXPECT_THAT(list(".git/*"), ElementsAre(".git/5.png"));
}

TEST_F(ListMatchingTest, APlainPathMatchesItself) {
  EXPECT_THAT(list("a/1.png"), ElementsAre("a/1.png"));
  EXPECT_THAT(list("a//1.png"), ElementsAre("a/1.png"));
  EXPECT_THAT(list("a"), IsEmpty());
  EXPECT_THAT(list("a/9.png"), IsEmpty());
  EXPECT_THAT(list("nowhere/*"), IsEmpty());
  EXPECT_EQ(list_matching(Io::real(), "", false).size(), 0U);
}

}  // namespace
}  // namespace penstock
