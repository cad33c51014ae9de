#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/temp_folder_for_tests.h"
#include "penstock/error.h"
#include "sample/rows.h"
#include "source/folder_listing.h"
#include "source/source.h"

namespace penstock {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// Sample `number`, read through the two halves of the source.
Result<Sample> sample(const Source& source, std::uint64_t number) {
  std::vector<Read> reads;
  source.reads(number, reads);
  std::vector<Bytes> bytes;
  for (const Read& read : reads) {
    auto got = read_now(Io::real(), read);
    if (!got) return std::move(got.failure());
    bytes.push_back(std::move(*got));
  }
  Scratch scratch;
  const ScratchBlock out(source.spec(), 1, scratch);
  if (auto done = source.decode({&number, 1}, bytes, out.view(), scratch); !done)
    return std::move(done.failure());
  const Sample row = read_row(out.view(), 0);
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : row.leaves()) leaves.push_back(leaf.kept());
  return Sample::assemble(row.structure(), std::move(leaves));
}

std::string identity(const Source& source) {
  Digest digest;
  source.identify(digest);
  return digest.text();
}
std::string values_identity(const Source& source) {
  Digest digest;
  source.identify_values(digest);
  return digest.text();
}

std::shared_ptr<const Source> folder_source(const TempFolder& folder, bool with_path = false) {
  return make_file_folder(kImageFiles, list_images(folder.path()).listing(), with_path);
}

TEST(ImageFolderTest, ASampleIsTheFileAndItsLabel) {
  const TempFolder folder;
  folder.write("cat/1.png", "meow");
  folder.write("dog/2.png", "woof");
  const auto source = folder_source(folder, true);
  EXPECT_EQ(source->spec().text(), "{image: bytes[], label: i64[], path: string[]}");
  const auto dog = sample(*source, 1);
  ASSERT_TRUE(dog) << dog.failure().message;
  EXPECT_EQ((*dog)["image"].text(), "woof");
  EXPECT_EQ((*dog)["label"].item<std::int64_t>(), 1);
  EXPECT_EQ((*dog)["path"].text(), "dog/2.png");
  EXPECT_EQ(source->file_of(1), folder.path("dog/2.png"));
  EXPECT_EQ(source->class_names(), (std::vector<std::string>{"cat", "dog"}));
}

TEST(ImageFolderTest, WithoutLabelsThereIsNoLabelField) {
  const TempFolder folder;
  folder.write("1.png", "x");
  const auto source =
      make_file_folder(kImageFiles, list_images(folder.path(), {.labels = false}).listing(), false);
  EXPECT_EQ(source->spec().text(), "{image: bytes[]}");
  EXPECT_TRUE(sample(*source, 0));
}

TEST(ImageFolderTest, AFileOfAnotherSizeIsAFailureThatRepeats) {
  const TempFolder folder;
  folder.write("cat/1.png", "four");
  const auto source = folder_source(folder);
  for (const char* content : {"abc", "abcde", ""}) {
    folder.write("cat/1.png", content);
    const auto got = sample(*source, 0);
    ASSERT_FALSE(got);
    EXPECT_THAT(got.failure().message, HasSubstr("it had 4 when it was listed"));
    EXPECT_FALSE(got.failure().transient());
  }
  std::filesystem::remove(folder.path("cat/1.png"));
  EXPECT_THAT(sample(*source, 0).failure().message, HasSubstr("No such file"));
  folder.make_folder("cat/1.png");
  EXPECT_THAT(sample(*source, 0).failure().message, HasSubstr("is a folder"));
}

TEST(ImageFolderTest, TheSameFilesInAnotherFolderAreTheSameData) {
  const TempFolder here;
  const TempFolder there;
  for (const TempFolder* folder : {&here, &there}) folder->write("cat/1.png", "x");
  EXPECT_EQ(identity(*folder_source(here)), identity(*folder_source(there)));
  there.write("cat/1.png", "xx");
  EXPECT_NE(identity(*folder_source(here)), identity(*folder_source(there)));
}

TEST(FromPathsTest, FromPathsKeepsTheOrderAndTheLabels) {
  const TempFolder folder;
  const std::string b = folder.write("b", "B");
  const std::string a = folder.write("deep/a", "A");
  const auto source = make_from_paths(kImageFiles, Io::real(), {b, a, b}, {5, -7, 0});
  ASSERT_EQ(source->size(), 3U);
  const auto second = sample(*source, 1);
  ASSERT_TRUE(second) << second.failure().message;
  EXPECT_EQ((*second)["image"].text(), "A");
  EXPECT_EQ((*second)["label"].item<std::int64_t>(), -7);
  EXPECT_EQ(source->file_of(1), a);
}

TEST(FromPathsTest, LabelsArePartOfTheValuesAndRelativeNamesOfTheOrder) {
  const TempFolder here;
  const TempFolder there;
  std::vector<std::string> paths;
  std::vector<std::string> others;
  for (const char* name : {"a", "b"}) {
    paths.push_back(here.write(name, name));
    others.push_back(there.write(name, name));
  }
  const auto source = make_from_paths(kImageFiles, Io::real(), paths, {1, 2});
  EXPECT_EQ(identity(*source), identity(*make_from_paths(kImageFiles, Io::real(), others, {1, 2})));
  const auto relabeled = make_from_paths(kImageFiles, Io::real(), paths, {2, 1});
  EXPECT_EQ(identity(*source), identity(*relabeled));
  EXPECT_NE(values_identity(*source), values_identity(*relabeled));
}

TEST(FromPathsTest, MissingAndEmptyFilesFailWhenTheyAreRead) {
  const TempFolder folder;
  const auto source = make_from_paths(kImageFiles, Io::real(),
                                      {folder.path("gone"), folder.write("empty", "")}, {});
  EXPECT_THAT(sample(*source, 0).failure().message, HasSubstr("No such file"));
  EXPECT_THAT(sample(*source, 1).failure().message, HasSubstr("is empty"));
  EXPECT_FALSE(sample(*source, 0).failure().transient());
}

TEST(FromPathsTest, NoPathsAndWrongNumbersOfLabelsThrow) {
  EXPECT_THROW(make_from_paths(kImageFiles, Io::real(), {}, {}), ConfigError);
  EXPECT_THROW(make_from_paths(kImageFiles, Io::real(), {"a", ""}, {}), ConfigError);
  EXPECT_THAT([] { make_from_paths(kImageFiles, Io::real(), {"a", "b"}, {1}); },
              ThrowsMessage<ConfigError>(HasSubstr("2 paths and 1 labels")));
}

TEST(ListFilesTest, ListFilesReturnsPathsAndThrowsIfNothingMatches) {
  const TempFolder folder;
  folder.write("b.txt", "x");
  folder.write("a.txt", "x");
  const auto source = make_list_files(Io::real(), folder.path("*.txt"), {});
  EXPECT_EQ((*sample(*source, 0)).tensor().text(), folder.path("a.txt"));
  EXPECT_EQ(source->file_of(1), folder.path("b.txt"));
  EXPECT_THAT([&] { make_list_files(Io::real(), folder.path("*.png"), {}); },
              ThrowsMessage<ConfigError>(HasSubstr(folder.path("*.png"))));
}

TEST(ImageFolderTest, AFileBeyondTheLimitIsAFailureOfItsSampleAndIsNotRead) {
  const TempFolder folder;
  folder.write("cat/a.png", "1");
  folder.write("cat/huge.png", "1");
  // Sparse: larger than any memory, without disk blocks.
  std::filesystem::resize_file(folder.path("cat/huge.png"), std::uint64_t{1} << 41);
  const auto listing =
      std::make_shared<const FolderListing>(list_folder(Io::real(), folder.path(), {}));
  const auto source = make_file_folder(kImageFiles, listing, false);
  EXPECT_TRUE(sample(*source, 0).ok());
  const auto huge = sample(*source, 1);
  ASSERT_FALSE(huge);
  EXPECT_THAT(huge.failure().message, HasSubstr("has 2199023255552 bytes, more than the limit of"));
}

TEST(ImageFolderTest, TheByteLimitCanBeSet) {
  const TempFolder folder;
  folder.write("cat/a.png", "12345");
  const auto listing = std::make_shared<const FolderListing>(
      list_folder(Io::real(), folder.path(), {.bytes_max = 4}));
  const auto source = make_file_folder(kImageFiles, listing, false);
  EXPECT_THAT(sample(*source, 0).failure().message, HasSubstr("more than the limit of 4"));
  EXPECT_EQ(source->arguments()["bytes_max"], 4);
}

TEST(ImageFolderTest, ALinkThatReplacesAListedFileIsFollowedOnlyIfLinksAre) {
  using Case = std::pair<FollowLinks, bool>;
  for (const auto& [follow, allowed] : {Case{FollowLinks::never, false},
                                        {FollowLinks::inside, false},
                                        {FollowLinks::anywhere, true}}) {
    const TempFolder folder;
    folder.write("secret", "12345");
    folder.write("root/cat/a.png", "abcde");
    const auto listing = std::make_shared<const FolderListing>(
        list_folder(Io::real(), folder.path("root"), {.follow_links = follow}));
    const auto source = make_file_folder(kImageFiles, listing, false);
    EXPECT_TRUE(sample(*source, 0).ok());
    std::filesystem::remove(folder.path("root/cat/a.png"));
    folder.link("root/cat/a.png", folder.path("secret"));
    EXPECT_EQ(sample(*source, 0).ok(), allowed) << static_cast<int>(follow);
  }
}

TEST(ImageFolderTest, AFolderReplacedByALinkToTheOutsideIsNotFollowed) {
  const TempFolder folder;
  folder.write("other/a.png", "12345");
  folder.write("root/cat/a.png", "abcde");
  const auto listing =
      std::make_shared<const FolderListing>(list_folder(Io::real(), folder.path("root"), {}));
  const auto source = make_file_folder(kImageFiles, listing, false);
  std::filesystem::remove_all(folder.path("root/cat"));
  folder.link("root/cat", "../other");
  EXPECT_THAT(sample(*source, 0).failure().message, HasSubstr("outside of"));
}

}  // namespace
}  // namespace penstock
