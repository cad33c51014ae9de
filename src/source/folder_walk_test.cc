#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "penstock/error.h"
#include "source/folder_listing.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

FolderListing list(const TempFolder& folder, const FolderOptions& options = {}) {
  return list_folder(Io::real(), folder.path(), options);
}

/// "name=label" of each file.
std::vector<std::string> files_of(const FolderListing& listing) {
  std::vector<std::string> files;
  for (std::size_t i = 0; i < listing.files.size(); ++i)
    files.push_back(fmt::format("{}={}", listing.files.name(i), listing.files.label(i)));
  return files;
}

std::string left_out(const FolderListing& listing) {
  return left_out_text(listing.left_out);
}

TEST(FolderWalkTest, ClassesAreTheFoldersWithImagesSortedByName) {
  const TempFolder folder;
  folder.write("dog/1.jpg", "x");
  folder.write("cat/b/deep/2.PNG", "x");
  folder.write("cat/a.jpeg", "xyz");
  folder.make_folder("none");
  const FolderListing listing = list(folder);
  EXPECT_THAT(listing.class_names, ElementsAre("cat", "dog"));
  EXPECT_THAT(files_of(listing), ElementsAre("cat/a.jpeg=0", "cat/b/deep/2.PNG=0", "dog/1.jpg=1"));
  EXPECT_EQ(listing.files.bytes(0), 3U);
  EXPECT_EQ(left_out(listing), "1 class folders without images (none)");
}

TEST(FolderWalkTest, FilesAreSortedByTheBytesOfTheirNames) {
  std::vector<std::string> names{"a/x.png", "a-b/x.png", "a/x-y/z.png", "a/x.png.png",
                                 "B/x.png", "a/x/z.png", "\xff/x.png",  "a0/é.png"};
  const auto order = [&] {
    const TempFolder folder;
    for (const std::string& name : names) folder.write(name, "x");
    const FolderListing listing = list(folder);
    std::vector<std::string> found;
    for (std::size_t i = 0; i < listing.files.size(); ++i)
      found.emplace_back(listing.files.name(i));
    EXPECT_THAT(listing.class_names, ElementsAre("B", "a", "a-b", "a0", "\xff"));
    return found;
  };
  const auto forward = order();
  std::ranges::reverse(names);
  EXPECT_EQ(order(), forward);
  std::ranges::sort(names);
  EXPECT_EQ(forward, names);
}

TEST(FolderWalkTest, SkippedEntriesAreCountedByReasonAndNamed) {
  const TempFolder folder;
  folder.write("cat/good.png", "x");
  folder.write("cat/.hidden.png", "x");
  folder.write("cat/empty.png", "");
  folder.write("cat/notes.txt", "x");
  folder.write("cat/noextension", "x");
  folder.write("cat/like.png/inside.png", "x");
  folder.write(".git/config", "x");
  folder.write("outside.png", "x");
  folder.write("README", "x");
  folder.link("cat/broken.png", "nowhere");
  ASSERT_EQ(::mkfifo(folder.path("cat/pipe.png").c_str(), 0600), 0);
  folder.make_folder("empty");
  const FolderListing listing = list(folder);
  EXPECT_THAT(files_of(listing), ElementsAre("cat/good.png=0"));
  for (const char* text :
       {"2 hidden (.git, cat/.hidden.png)", "1 empty (cat/empty.png)",
        "3 of another extension (README, cat/noextension, cat/notes.txt)",
        "1 folders named like images (cat/like.png)", "1 broken links (cat/broken.png)",
        "1 neither files nor folders (cat/pipe.png)", "1 class folders without images (empty)",
        "1 images outside the class folders (outside.png)"})
    EXPECT_THAT(left_out(listing), HasSubstr(text));
}

TEST(FolderWalkTest, AtMostFiveNamesAreListedPerReason) {
  const TempFolder folder;
  folder.write("cat/good.png", "x");
  for (int i = 0; i < 9; ++i) folder.write(fmt::format("cat/{}.txt", i), "x");
  EXPECT_THAT(left_out(list(folder)), HasSubstr("9 of another extension (cat/0.txt, cat/1.txt, "
                                                "cat/2.txt, cat/3.txt, cat/4.txt, ...)"));
}

TEST(FolderWalkTest, LinksToTheOutsideAreFollowedOnlyOnRequest) {
  const TempFolder folder;
  const TempFolder elsewhere;
  elsewhere.write("far.png", "x");
  folder.write("cat/1.png", "x");
  folder.link("copy", "cat");
  folder.link("cat/2.png", "1.png");
  folder.link("cat/out.png", elsewhere.path("far.png"));
  folder.link("more", elsewhere.path());
  EXPECT_THAT(files_of(list(folder)),
              ElementsAre("cat/1.png=0", "cat/2.png=0", "copy/1.png=1", "copy/2.png=1"));
  EXPECT_THAT(left_out(list(folder)),
              HasSubstr("3 links that lead out of the folder (cat/out.png, copy/out.png, more)"));
  const FolderListing none = list(folder, {.follow_links = FollowLinks::never});
  EXPECT_THAT(files_of(none), ElementsAre("cat/1.png=0"));
  const FolderListing all = list(folder, {.follow_links = FollowLinks::anywhere});
  EXPECT_THAT(all.class_names, ElementsAre("cat", "copy", "more"));
  EXPECT_THAT(left_out(all), IsEmpty());
}

TEST(FolderWalkTest, CyclicLinksEnd) {
  const TempFolder folder;
  folder.write("cat/1.png", "x");
  folder.link("cat/up", "..");
  folder.link("cat/self", ".");
  folder.link("a/b", "../b");
  folder.link("b/a", "../a");
  folder.link("loop.png", "loop.png");
  const FolderListing listing = list(folder);
  EXPECT_THAT(files_of(listing), ElementsAre("cat/1.png=0"));
  EXPECT_THAT(left_out(listing), AllOf(HasSubstr("links to a folder above them"),
                                       HasSubstr("1 broken links (loop.png)")));
}

TEST(FolderWalkTest, LinksThatMultiplyAreBounded) {
  const TempFolder folder;
  folder.write("z/1.png", "x");
  for (int i = 0; i < 12; ++i)
    for (const char* name : {"x", "y"})
      folder.link(fmt::format("l{:02}/{}", i, name),
                  i == 11 ? "../z" : fmt::format("../l{:02}", i + 1));
  EXPECT_LT(list(folder).files.size(), 5000U);
}

TEST(FolderWalkTest, AClassFollowsOneLinkToAFolderAndNamesTheOthers) {
  // 8 folders, each with 6 links to the next, and one image: 6^8 paths lead to it.
  const TempFolder folder;
  folder.write("cat/f8/1.png", "x");
  for (int i = 0; i < 8; ++i)
    for (int link = 0; link < 6; ++link)
      folder.link(fmt::format("cat/f{}/l{}", i, link), fmt::format("../f{}", i + 1));
  for (const bool labels : {true, false}) {
    const FolderListing listing = list(folder, {.labels = labels});
    EXPECT_THAT(files_of(listing).size(), 2U);  // through the first link, and directly
    EXPECT_THAT(
        left_out(listing),
        HasSubstr("links to a folder that is listed already (cat/f0/l0/l0/l0/l0/l0/l0/l0/l1"));
  }
}

TEST(FolderWalkTest, ALinkToAFolderListedInTheSameClassIsSkipped) {
  const TempFolder folder;
  folder.write("cat/a/1.png", "x");
  folder.link("cat/b", "a");
  folder.write("dog/2.png", "x");
  folder.link("dog/b", "../cat/a");
  const FolderListing listing = list(folder);
  EXPECT_THAT(files_of(listing), ElementsAre("cat/a/1.png=0", "dog/2.png=1", "dog/b/1.png=1"));
  EXPECT_THAT(left_out(listing), HasSubstr("1 links to a folder that is listed already (cat/b)"));
}

TEST(FolderWalkTest, AnUnreadableFolderIsSkipped) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const TempFolder folder;
  folder.write("cat/1.png", "x");
  folder.write("shut/1.png", "x");
  ::chmod(folder.path("shut").c_str(), 0);
  EXPECT_THAT(left_out(list(folder)), HasSubstr("1 folders that cannot be read (shut)"));
  ::chmod(folder.path("shut").c_str(), 0700);
}

TEST(FolderWalkTest, OtherExtensionsCanBeSet) {
  const TempFolder folder;
  folder.write("cat/1.png", "x");
  folder.write("cat/2.Tiff", "x");
  EXPECT_THAT(files_of(list(folder, {.extensions = {".TIFF", "gif"}})),
              ElementsAre("cat/2.Tiff=0"));
  EXPECT_THROW(list(folder, {.extensions = {"tar.gz"}}), ConfigError);
  EXPECT_THROW(list(folder, {.extensions = {""}}), ConfigError);
}

TEST(FolderWalkTest, WithoutLabelsImagesMayBeAnywhere) {
  const TempFolder folder;
  folder.write("1.png", "x");
  folder.write("a/b/2.png", "x");
  const FolderListing listing = list(folder, {.labels = false});
  EXPECT_THAT(files_of(listing), ElementsAre("1.png=-1", "a/b/2.png=-1"));
  EXPECT_THAT(listing.class_names, IsEmpty());
}

TEST(FolderWalkTest, ImagesWithoutClassFoldersThrowWithARemedy) {
  const TempFolder folder;
  folder.write("1.png", "x");
  folder.write("2.png", "x");
  EXPECT_THAT([&] { list(folder); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr(folder.path()), HasSubstr("2 images"),
                                               HasSubstr("option labels to false"))));
}

TEST(FolderWalkTest, AFolderWithoutImagesThrowsAndListsItsContent) {
  const TempFolder folder;
  EXPECT_THAT([&] { list(folder); }, ThrowsMessage<ConfigError>(AllOf(HasSubstr(folder.path()),
                                                                      HasSubstr("it is empty"))));
  folder.write("cat/a\xff.txt", "x");
  EXPECT_THAT([&] { list(folder); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("there are only 1 of another extension (cat/a\\xff.txt)"),
                        HasSubstr("jpeg, jpg"))));
  EXPECT_THROW(list_folder(Io::real(), folder.path("not_there"), {}), ConfigError);
  EXPECT_THROW(list_folder(Io::real(), "", {}), ConfigError);
  EXPECT_THROW(list_folder(Io::real(), folder.path() + std::string("\0x", 2), {}), ConfigError);
  EXPECT_THROW(list_folder(Io::real(), folder.path("cat/a\xff.txt"), {}), ConfigError);
}

TEST(FolderWalkTest, AHundredThousandFilesAreListed) {
  if (std::getenv("PENSTOCK_LONG") == nullptr) GTEST_SKIP() << "only under PENSTOCK_LONG=1";
  const TempFolder folder;
  constexpr std::size_t kFiles = 100'000;
  for (std::size_t i = 0; i < kFiles; ++i) folder.write(fmt::format("c{}/{}.png", i % 100, i), "x");
  const FolderListing listing = list(folder);
  EXPECT_EQ(listing.files.size(), kFiles);
  EXPECT_EQ(listing.class_names.size(), 100U);
  EXPECT_LT(listing.files.memory_bytes() / kFiles, 200U);
}

}  // namespace
}  // namespace penstock
