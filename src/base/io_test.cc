#include "base/io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/temp_folder.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class IoTest : public testing::Test {
 protected:
  IoTest() { std::ofstream(path_, std::ios::binary) << "0123456789"; }
  ~IoTest() override { std::remove(path_.c_str()); }

  const std::string path_ = testing::TempDir() + "penstock_io_" +
                            testing::UnitTest::GetInstance()->current_test_info()->name();
  Io& io_ = Io::real();
};

TEST_F(IoTest, ReadsExactlyTheAskedBytes) {
  const auto middle = io_.read(path_, 3, 4);
  ASSERT_TRUE(middle) << middle.failure().message;
  EXPECT_EQ(text_of(*middle), "3456");
  const auto nothing = io_.read(path_, 10, 0);
  ASSERT_TRUE(nothing);
  EXPECT_TRUE((*nothing).empty());
}

TEST_F(IoTest, AFileThatEndsBeforeIsAFailureThatSaysWhere) {
  const auto cut = io_.read(path_, 6, 5);
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.failure().message, AllOf(HasSubstr(path_), HasSubstr("byte 10")));
  EXPECT_FALSE(io_.read(path_, 11, 1).ok());
}

TEST_F(IoTest, ALengthBeyondAllMemoryIsAFailureToo) {
  EXPECT_FALSE(io_.read(path_, 0, std::uint64_t{1} << 62).ok());
  EXPECT_FALSE(io_.read(path_, 0, UINT64_MAX).ok());
  EXPECT_FALSE(io_.read(path_, UINT64_MAX, 1).ok());
}

TEST_F(IoTest, AMissingFileAndAFolderAreFailuresThatNameThePath) {
  for (const std::string& path : {path_ + "_missing", testing::TempDir()}) {
    const auto bytes = io_.read(path, 0, 1);
    ASSERT_FALSE(bytes);
    EXPECT_THAT(bytes.failure().message, HasSubstr(path));
    const auto text = io_.read_text(path);
    ASSERT_FALSE(text);
    EXPECT_THAT(text.failure().message, HasSubstr(path));
  }
}

TEST_F(IoTest, ReadTextTakesTheWholeFileWhateverItsSizeClaims) {
  std::string large(10'000, 'x');
  large += '\0';
  std::ofstream(path_, std::ios::binary) << large;
  const auto text = io_.read_text(path_);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, large);
  const auto process = io_.read_text("/proc/self/status");
  ASSERT_TRUE(process);
  EXPECT_THAT(*process, HasSubstr("Threads:"));
}

TEST_F(IoTest, AppendAddsToTheEndAndMakesTheFile) {
  std::remove(path_.c_str());
  ASSERT_TRUE(io_.append(path_, "one\n").ok());
  ASSERT_TRUE(io_.append(path_, "").ok());
  ASSERT_TRUE(io_.append(path_, "two\n").ok());
  const auto text = io_.read_text(path_);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "one\ntwo\n");
  const auto refused = io_.append(path_ + "_missing/file", "x");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.failure().message, HasSubstr(path_));
}

TEST_F(IoTest, AWholeFileMustHaveItsSize) {
  EXPECT_EQ(text_of(*io_.read_whole(path_, 10)), "0123456789");
  EXPECT_EQ(text_of(*io_.read_whole(path_, std::nullopt)), "0123456789");
  for (const std::uint64_t size : {0, 9, 11}) {
    const auto other = io_.read_whole(path_, size);
    ASSERT_FALSE(other);
    EXPECT_THAT(other.failure().message, AllOf(HasSubstr(path_), HasSubstr("has 10 bytes")));
    EXPECT_FALSE(other.failure().may_pass);
  }
  std::ofstream(path_, std::ios::trunc).flush();
  EXPECT_TRUE((*io_.read_whole(path_, 0)).empty());
}

TEST_F(IoTest, FoldersAndPipesAreNoFilesAndDoNotHoldAnybody) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(io_.read_whole(folder.path("pipe"), std::nullopt).failure().message,
              HasSubstr("is not a file"));
  EXPECT_THAT(io_.read_whole(folder.path(), std::nullopt).failure().message,
              HasSubstr("is a folder"));
  EXPECT_FALSE(io_.read_whole(folder.path("gone"), std::nullopt).failure().may_pass);
}

TEST_F(IoTest, AFolderIsListedWithKindsAndSizes) {
  const TempFolder folder;
  folder.write("file", "12345");
  folder.make_folder("folder");
  folder.link("link", "file");
  folder.link("broken", "nowhere");
  auto entries = io_.list(folder.path());
  ASSERT_TRUE(entries);
  std::ranges::sort(*entries, {}, &FolderEntry::name);
  ASSERT_EQ((*entries).size(), 4U);
  using Kind = FolderEntry::Kind;
  const auto is = [&](std::size_t i, const char* name, Kind kind, bool link) {
    const FolderEntry& entry = (*entries)[i];
    return entry.name == name && entry.kind == kind && entry.link == link;
  };
  EXPECT_TRUE(is(0, "broken", Kind::broken, true));
  EXPECT_TRUE(is(1, "file", Kind::file, false));
  EXPECT_TRUE(is(2, "folder", Kind::folder, false));
  EXPECT_TRUE(is(3, "link", Kind::file, true));
  EXPECT_EQ((*entries)[3].bytes, 5U);
  EXPECT_FALSE(io_.list(folder.path("gone")).ok());
  EXPECT_EQ((*io_.look(folder.path("folder"))).inode, (*entries)[2].inode);
  EXPECT_EQ(*io_.real_path(folder.path("link")), *io_.real_path(folder.path("file")));
}

TEST_F(IoTest, APublishedFileIsWholeAndAloneAndReplacesTheOldOne) {
  const TempFolder folder;
  ASSERT_TRUE(io_.publish(folder.path("a"), "first"));
  ASSERT_TRUE(io_.publish(folder.path("a"), "second"));
  EXPECT_EQ(*io_.read_text(folder.path("a")), "second");
  EXPECT_EQ((*io_.list(folder.path())).size(), 1U);
  EXPECT_FALSE(io_.publish(folder.path("no/folder"), "x").ok());
}

}  // namespace
}  // namespace penstock
