#include "source/file_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

std::string digest_of(const FileTable& table) {
  Digest digest;
  table.identify(digest);
  return digest.text();
}

TEST(FileTableTest, ReturnsNamesSizesAndLabels) {
  FileTable table("data");
  table.add("a/x.png", 10, 0);
  table.add("b/\xff.png", 20, 1);
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table.name(0), "a/x.png");
  EXPECT_EQ(table.path(1), "data/b/\xff.png");
  EXPECT_EQ(table.bytes(1), 20U);
  EXPECT_EQ(table.label(1), 1);
  EXPECT_EQ(table.bytes_total(), 30U);
}

TEST(FileTableTest, AFileUsesItsNameAndAboutTwentyBytes) {
  FileTable table("/data/train");
  constexpr std::size_t kFiles = 100'000;
  std::size_t name_bytes = 0;
  for (std::size_t i = 0; i < kFiles; ++i) {
    const std::string name = fmt::format("n{:08}/n{:08}_{}.JPEG", i / 1300, i / 1300, i);
    name_bytes += name.size();
    table.add(name, i);
  }
  // Doubling as it grows may leave half of it unused.
  EXPECT_LT(table.memory_bytes(), 2 * (name_bytes + 20 * kFiles) + 1024);
  EXPECT_LT(table.memory_bytes() / kFiles, 110U);
}

TEST(FileTableTest, TheIdentityIncludesNamesAndSizesButNotTheRoot) {
  FileTable here("/here");
  FileTable there("/elsewhere/data");
  FileTable larger("/here");
  FileTable other("/here");
  here.add("a", 1);
  there.add("a", 1);
  larger.add("a", 2);
  other.add("b", 1);
  EXPECT_EQ(digest_of(here), digest_of(there));
  EXPECT_NE(digest_of(here), digest_of(larger));
  EXPECT_NE(digest_of(here), digest_of(other));
}

TEST(FileTableTest, PathsAreJoinedOnce) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("/", "b"), "/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(join_path("a", ""), "a");
}

}  // namespace
}  // namespace penstock
