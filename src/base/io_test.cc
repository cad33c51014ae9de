#include "penstock/io.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fault.h"
#include "base/temp_folder_for_tests.h"
#include "base/thread.h"

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

TEST_F(IoTest, ReadsExactlyTheRequestedBytes) {
  const auto middle = io_.read(path_, 3, 4);
  ASSERT_TRUE(middle) << middle.failure().message;
  EXPECT_EQ(text_of(*middle), "3456");
  const auto nothing = io_.read(path_, 10, 0);
  ASSERT_TRUE(nothing);
  EXPECT_TRUE((*nothing).empty());
}

TEST_F(IoTest, AFileThatEndsEarlyIsAFailureWithItsSize) {
  const auto cut = io_.read(path_, 6, 5);
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.failure().message, AllOf(HasSubstr(path_), HasSubstr("byte 10")));
  EXPECT_FALSE(io_.read(path_, 11, 1).ok());
}

FileHandle handle_of(const std::string& path) {
  const auto entry = Io::real().look(path);
  return {path, (*entry).bytes, (*entry).modified_ns};
}

TEST_F(IoTest, AHandleReadsPartsOfItsFile) {
  const FileHandle file = handle_of(path_);
  std::string part(4, ' ');
  ASSERT_TRUE(io_.read_at(file, 3, std::as_writable_bytes(std::span(part))));
  EXPECT_EQ(part, "3456");
  const auto cut = io_.read_at(file, 8, std::as_writable_bytes(std::span(part)));
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.failure().message, AllOf(HasSubstr(path_), HasSubstr("byte 10")));
  EXPECT_FALSE(io_.read_at(file, UINT64_MAX, std::as_writable_bytes(std::span(part))).ok());
}

TEST_F(IoTest, AFileThatWasChangedSinceItsHandleWasMadeIsNotRead) {
  const FileHandle file = handle_of(path_);
  std::ofstream(path_, std::ios::binary) << "other content";
  std::string part(4, ' ');
  const auto changed = io_.read_at(file, 0, std::as_writable_bytes(std::span(part)));
  ASSERT_FALSE(changed);
  EXPECT_THAT(changed.failure().message, AllOf(HasSubstr(path_), HasSubstr("was changed")));
  EXPECT_FALSE(changed.failure().transient());
}

TEST_F(IoTest, AFileThatIsWrittenInPlaceIsNoticedWhileItIsOpen) {
  const FileHandle file = handle_of(path_);
  std::string part(4, ' ');
  ASSERT_TRUE(io_.read_at(file, 0, std::as_writable_bytes(std::span(part))));
  std::ofstream(path_, std::ios::binary) << "other content";
  bool noticed = false;
  for (int i = 0; i < 16 && !noticed; ++i)
    noticed = !io_.read_at(file, 0, std::as_writable_bytes(std::span(part))).ok();
  EXPECT_TRUE(noticed);
}

TEST_F(IoTest, MoreHandlesThanDescriptorsCanBeRead) {
  std::vector<std::unique_ptr<FileHandle>> handles;
  const TempFolder folder;
  for (std::size_t i = 0; i < 2000; ++i) {
    const std::string path = fmt::format("{}/{}", folder.path(), i);
    std::ofstream(path, std::ios::binary) << fmt::format("{:04}", i);
    const auto entry = io_.look(path);
    handles.push_back(std::make_unique<FileHandle>(path, (*entry).bytes, (*entry).modified_ns));
  }
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < 2000; ++i) {
      std::string text(4, ' ');
      ASSERT_TRUE(io_.read_at(*handles[i], 0, std::as_writable_bytes(std::span(text))));
      EXPECT_EQ(text, fmt::format("{:04}", i));
    }
  }
  const auto open = std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                  std::filesystem::directory_iterator());
  EXPECT_LT(open, 400);
}

TEST_F(IoTest, ALengthBeyondAllMemoryIsAFailure) {
  EXPECT_FALSE(io_.read(path_, 0, std::uint64_t{1} << 62).ok());
  EXPECT_FALSE(io_.read(path_, 0, UINT64_MAX).ok());
  EXPECT_FALSE(io_.read(path_, UINT64_MAX, 1).ok());
}

TEST_F(IoTest, AMissingFileAndAFolderAreFailuresThatNameThePath) {
  for (const std::string& path : {path_ + "_missing", testing::TempDir()}) {
    const auto bytes = io_.read(path, 0, 1);
    ASSERT_FALSE(bytes);
    EXPECT_THAT(bytes.failure().message, HasSubstr(path));
    const auto text = io_.read_text(path, 100);
    ASSERT_FALSE(text);
    EXPECT_THAT(text.failure().message, HasSubstr(path));
  }
}

TEST_F(IoTest, ReadTextReadsTheWholeFileWhateverItsReportedSize) {
  std::string large(10'000, 'x');
  large += '\0';
  std::ofstream(path_, std::ios::binary) << large;
  const auto text = io_.read_text(path_, 1 << 20);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, large);
  const auto process = io_.read_text("/proc/self/status", 1 << 20);
  ASSERT_TRUE(process);
  EXPECT_THAT(*process, HasSubstr("Threads:"));
}

TEST_F(IoTest, AppendAddsToTheEndAndCreatesTheFile) {
  std::remove(path_.c_str());
  ASSERT_TRUE(io_.append(path_, "one\n").ok());
  ASSERT_TRUE(io_.append(path_, "").ok());
  ASSERT_TRUE(io_.append(path_, "two\n").ok());
  const auto text = io_.read_text(path_, 1 << 20);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "one\ntwo\n");
  const auto refused = io_.append(path_ + "_missing/file", "x");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.failure().message, HasSubstr(path_));
}

TEST_F(IoTest, AWholeFileMustHaveItsSize) {
  EXPECT_EQ(text_of(*io_.read_whole(path_, {.bytes_max = 10, .size = 10})), "0123456789");
  EXPECT_EQ(text_of(*io_.read_whole(path_, {.bytes_max = 10})), "0123456789");
  for (const std::uint64_t size : {0, 9, 11}) {
    const auto other = io_.read_whole(path_, {.bytes_max = 100, .size = size});
    ASSERT_FALSE(other);
    EXPECT_THAT(other.failure().message, AllOf(HasSubstr(path_), HasSubstr("has 10 bytes")));
    EXPECT_FALSE(other.failure().transient());
  }
  std::ofstream(path_, std::ios::trunc).flush();
  EXPECT_TRUE((*io_.read_whole(path_, {.bytes_max = 0, .size = 0})).empty());
}

TEST_F(IoTest, FoldersAndPipesAreRejectedWithoutBlocking) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(io_.read_whole(folder.path("pipe"), {.bytes_max = 1}).failure().message,
              HasSubstr("is not a file"));
  EXPECT_THAT(io_.read_whole(folder.path(), {.bytes_max = 1}).failure().message,
              HasSubstr("is a folder"));
  EXPECT_FALSE(io_.read_whole(folder.path("gone"), {.bytes_max = 1}).failure().transient());
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

TEST_F(IoTest, APublishedFileIsCompleteAndReplacesTheOldOne) {
  const TempFolder folder;
  ASSERT_TRUE(io_.publish(folder.path("a"), "first"));
  ASSERT_TRUE(io_.publish(folder.path("a"), "second"));
  EXPECT_EQ(*io_.read_text(folder.path("a"), 100), "second");
  EXPECT_EQ((*io_.list(folder.path())).size(), 1U);
  EXPECT_FALSE(io_.publish(folder.path("no/folder"), "x").ok());
}

TEST_F(IoTest, AFileBeyondItsLimitIsRejectedBeforeMemoryIsAllocated) {
  // Sparse: larger than any memory, without disk blocks.
  const std::uint64_t huge = std::uint64_t{1} << 41;
  std::filesystem::resize_file(path_, huge);
  for (const std::optional<std::uint64_t> size : {std::optional<std::uint64_t>(), {huge}}) {
    const auto bytes = io_.read_whole(path_, {.bytes_max = 1 << 20, .size = size});
    ASSERT_FALSE(bytes);
    EXPECT_THAT(bytes.failure().message,
                AllOf(HasSubstr(path_), HasSubstr("has 2199023255552 bytes"),
                      HasSubstr("more than the limit of 1048576")));
    EXPECT_THAT(bytes.failure().remedy, HasSubstr("bytes_max"));
    EXPECT_FALSE(bytes.failure().transient());
  }
  EXPECT_THAT(io_.read_text(path_, 1 << 20).failure().message, HasSubstr("more than the limit"));
}

TEST_F(IoTest, AListedSizeBeyondTheLimitIsRejectedWithoutOpeningTheFile) {
  EXPECT_THAT(io_.read_whole(path_ + "_missing", {.bytes_max = 3, .size = 4}).failure().message,
              HasSubstr("more than the limit of 3"));
}

TEST_F(IoTest, ATextOfUnknownSizeIsReadUpToItsLimit) {
  const auto whole = io_.read_text("/proc/self/status", 1 << 20);
  ASSERT_TRUE(whole);
  EXPECT_THAT(io_.read_text("/proc/self/status", 10).failure().message,
              HasSubstr("more than the limit of 10"));
  EXPECT_EQ(*io_.read_text(path_, 10), "0123456789");
  EXPECT_FALSE(io_.read_text(path_, 9).ok());
}

TEST_F(IoTest, APipeInsteadOfATextFailsWithoutBlocking) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(io_.read_text(folder.path("pipe"), 10).failure().message, HasSubstr("not a file"));
}

TEST_F(IoTest, AFileWithinAFolderMayBeReachedThroughLinksThatStayInsideIt) {
  const TempFolder folder;
  folder.write("root/a/file", "in");
  folder.write("secret", "out");
  folder.link("root/inner", "a");
  folder.link("root/absolute", folder.path("root/a/file"));
  folder.link("root/outer", "../secret");
  folder.link("root/up", "..");
  folder.link("by_link", "root");
  for (const char* given : {"root", "root/", "by_link"}) {
    const FileRoot root{.given = folder.path(given), .real = *io_.real_path(folder.path(given))};
    const auto read = [&](const std::string& name) {
      return io_.read_whole(root.given + "/" + name, {.bytes_max = 10, .within = &root});
    };
    for (const char* name : {"a/file", "inner/file", "absolute"})
      EXPECT_TRUE(read(name).ok()) << name << ": " << read(name).failure().message;
    EXPECT_THAT(read("outer").failure().message,
                AllOf(HasSubstr("outer leads to"), HasSubstr("outside of")));
    EXPECT_FALSE(read("up/secret").ok());
  }
}

TEST_F(IoTest, WithoutLinksNoPartOfThePathMayBeALink) {
  const TempFolder folder;
  folder.write("root/a/file", "in");
  folder.link("root/inner", "a");
  folder.link("root/a/other", "file");
  // The root itself may be a link, and need not have been resolved before.
  folder.link("by_link", "root");
  for (const bool known : {true, false}) {
    FileRoot root{.given = folder.path("by_link"), .real = {}, .links = false};
    if (known) root.real = *io_.real_path(root.given);
    const auto read = [&](const std::string& name) {
      return io_.read_whole(root.given + "/" + name, {.bytes_max = 10, .within = &root});
    };
    EXPECT_TRUE(read("a/file").ok());
    EXPECT_THAT(read("a/other").failure().message, HasSubstr("links are not followed"));
    EXPECT_THAT(read("inner/file").failure().message, HasSubstr("links are not followed"));
  }
}

TEST_F(IoTest, ConcurrentWritersAlwaysLeaveACompleteFile) {
  constexpr std::size_t kWriters = 3;
  constexpr std::size_t kRounds = 200;
  const TempFolder folder;
  const std::string path = folder.path("shared");
  ASSERT_TRUE(io_.publish(path, std::string(5000, 'x')));
  std::vector<Thread> writers;
  for (std::size_t writer = 0; writer < kWriters; ++writer)
    writers.emplace_back("writer", [&, writer] {
      for (std::size_t round = 0; round < kRounds; ++round) {
        const auto letter = static_cast<char>('a' + writer);
        EXPECT_TRUE(io_.publish(path, std::string(5000 + 9000 * writer, letter)).ok());
      }
    });
  for (std::size_t round = 0; round < kRounds; ++round) {
    const auto text = io_.read_text(path, 1 << 20);
    ASSERT_TRUE(text) << text.failure().message;
    ASSERT_FALSE((*text).empty());
    const char letter = (*text)[0];
    const std::size_t size = letter == 'x' ? 5000 : 5000 + 9000 * std::size_t(letter - 'a');
    ASSERT_EQ(*text, std::string(size, letter));
  }
  writers.clear();
  EXPECT_EQ((*io_.list(folder.path())).size(), 1U);
}

TEST_F(IoTest, AFileThatCannotBePublishedLeavesNothingBehind) {
  const TempFolder folder;
  folder.write("taken/inside", "");  // a folder that is not empty cannot be replaced
  EXPECT_FALSE(io_.publish(folder.path("taken"), "x").ok());
  EXPECT_EQ((*io_.list(folder.path())).size(), 1U);
}

TEST_F(IoTest, ALinkUnderTheOldTemporaryNameIsNotFollowed) {
  const TempFolder folder;
  folder.write("victim", "precious");
  folder.link(fmt::format("a.{}.tmp", ::getpid()), "victim");
  ASSERT_TRUE(io_.publish(folder.path("a"), "new"));
  EXPECT_EQ(*io_.read_text(folder.path("victim"), 100), "precious");
  EXPECT_FALSE((*io_.look(folder.path("a"))).link);
}

TEST_F(IoTest, PartsOfAFileAreReadIntoTheirPlaces) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>('a' + i % 26);
  const TempFolder folder;
  const std::string path = folder.path("parts");
  std::ofstream(path, std::ios::binary) << text;
  const FileHandle file(path);
  EXPECT_TRUE(file.grows());
  std::vector<std::string> pieces(2000, std::string(2, ' '));
  pieces[7].clear();
  std::vector<std::span<std::byte>> parts;
  for (std::string& piece : pieces) parts.push_back(std::as_writable_bytes(std::span(piece)));
  ASSERT_TRUE(io_.read_parts(file, 100, parts));
  std::string joined;
  for (const std::string& piece : pieces) joined += piece;
  EXPECT_EQ(joined, text.substr(100, joined.size()));
  EXPECT_FALSE(io_.read_parts(file, 4000, parts).ok()) << "it ends before";
  std::ofstream(path, std::ios::binary | std::ios::app) << text;
  EXPECT_TRUE(io_.read_parts(file, 4000, parts).ok()) << "it may grow";
}

TEST_F(IoTest, AnAppenderWritesANewFileAndUndoesWhatFailed) {
  const TempFolder folder;
  const std::string path = folder.path("new");
  {
    auto file = io_.create(path);
    ASSERT_TRUE(file);
    EXPECT_FALSE(io_.create(path).ok()) << "it exists";
    const std::vector<std::string_view> parts{"one ", "", "two "};
    ASSERT_TRUE((*file)->append(parts));
    fault::arm("append.full", 1);
    EXPECT_FALSE((*file)->append(parts).ok());
    fault::disarm_all();
    ASSERT_TRUE((*file)->append(parts));
    ASSERT_TRUE((*file)->flush());
  }
  EXPECT_EQ(*io_.read_text(path, 100), "one two one two ");
  EXPECT_TRUE(io_.remove(path));
  EXPECT_TRUE(io_.remove(path)) << "there is none";
  EXPECT_FALSE(io_.look(path).ok());
}

TEST_F(IoTest, ALockIsHeldUntilItIsDestroyed) {
  const TempFolder folder;
  const std::string path = folder.path("lock");
  auto first = io_.try_lock(path);
  ASSERT_TRUE(first && *first);
  auto second = io_.try_lock(path);
  ASSERT_TRUE(second);
  EXPECT_EQ(*second, nullptr);
  (*first).reset();
  second = io_.try_lock(path);
  EXPECT_TRUE(second && *second);
}

}  // namespace
}  // namespace penstock
