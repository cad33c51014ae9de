#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/digest.h"
#include "base/temp_folder_for_tests.h"
#include "penstock/error.h"
#include "source/folder_listing.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class FolderIndexTest : public testing::Test {
 protected:
  FolderIndexTest() {
    data_.write("cat/a.png", "x");
    data_.write("cat/b\xff.png", "xy");
    data_.write("dog/c.png", "xyz");
  }
  [[nodiscard]] FolderIndex saved() const {
    list_images(data_.path()).save(file_);
    return FolderIndex::load(file_, data_.path());
  }
  TempFolder data_;
  TempFolder out_;
  std::string file_ = out_.path("index");
};

TEST_F(FolderIndexTest, ASavedIndexLoadsUnchanged) {
  const FolderIndex index = saved();
  EXPECT_EQ(index.files(), 3U);
  EXPECT_EQ(index.bytes(), 6U);
  EXPECT_EQ(index.name(1), "cat/b\xff.png");
  EXPECT_THROW((void)index.name(3), ConfigError);
  EXPECT_THAT(index.class_names(), ElementsAre("cat", "dog"));
  EXPECT_THAT(index.class_files(), ElementsAre(2, 1));
  EXPECT_EQ(encode_listing(*index.listing()), encode_listing(*list_images(data_.path()).listing()));
  index.check();
}

TEST_F(FolderIndexTest, ASavedIndexContainsNoAbsolutePathAndLeavesNoOtherFile) {
  EXPECT_EQ(encode_listing(*saved().listing()).find(data_.path()), std::string::npos);
  const std::filesystem::directory_iterator files(out_.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(FolderIndexTest, AFileThatIsMissingNewOrOfAnotherSizeIsNamedByTheCheck) {
  const FolderIndex index = saved();
  data_.write("cat/b\xff.png", "longer");
  EXPECT_THAT([&] { index.check(); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("cat/b\\xff.png has 6 bytes"), HasSubstr("the index says 2"))));
  data_.write("cat/a0.png", "x");
  EXPECT_THAT([&] { index.check(); }, ThrowsMessage<ConfigError>(HasSubstr("cat/a0.png is new")));
  std::filesystem::remove(data_.path("cat/a.png"));
  EXPECT_THAT([&] { index.check(); },
              ThrowsMessage<ConfigError>(HasSubstr("cat/a.png is missing")));
}

TEST_F(FolderIndexTest, ExtraFilesAtTheEndAreDetected) {
  const FolderIndex index = saved();
  data_.write("dog/z.png", "x");
  EXPECT_THAT([&] { index.check(); }, ThrowsMessage<ConfigError>(HasSubstr("dog/z.png is new")));
  std::filesystem::remove_all(data_.path("dog"));
  EXPECT_THAT([&] { index.check(); },
              ThrowsMessage<ConfigError>(HasSubstr("dog/c.png is missing")));
}

TEST_F(FolderIndexTest, ListImagesAcceptsAnIndexInsteadOfAFolder) {
  list_images(data_.path()).save(file_);
  data_.write("new/1.png", "x");
  EXPECT_EQ(list_images(data_.path(), {.index = file_}).files(), 3U);
  EXPECT_EQ(list_images(data_.path()).files(), 4U);
  EXPECT_THROW(list_images(data_.path(), {.extensions = {"gif"}, .index = file_}), ConfigError);
  EXPECT_THROW(list_images(data_.path(), {.labels = false, .index = file_}), ConfigError);
}

TEST_F(FolderIndexTest, AMissingOrInvalidIndexThrowsWithARemedy) {
  EXPECT_THAT([&] { FolderIndex::load(file_, data_.path()); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr(file_), HasSubstr("save("))));
  out_.write("index", "something else");
  EXPECT_THAT([&] { FolderIndex::load(file_, data_.path()); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr(file_), HasSubstr("not the index"))));
  EXPECT_THROW(list_images(data_.path()).save(out_.path("no/such/folder")), IoError);
}

TEST_F(FolderIndexTest, EveryTruncatedOrChangedByteIsDetected) {
  const std::string bytes = encode_listing(*list_images(data_.path()).listing());
  ASSERT_TRUE(decode_listing(bytes, ""));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    EXPECT_FALSE(decode_listing(std::string_view(bytes).substr(0, at), "").ok()) << at;
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    EXPECT_FALSE(decode_listing(changed, "").ok()) << at;
  }
  EXPECT_FALSE(decode_listing(bytes + "x", "").ok());
}

/// `bytes` with a valid digest in its last eight bytes.
std::string checked(std::string bytes) {
  bytes.resize(bytes.size() - 8);
  Digest digest;
  digest.add(bytes);
  const std::uint64_t value = digest.value();
  return bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

TEST_F(FolderIndexTest, NamesOutsideTheFolderAreRejectedEvenWithAValidChecksum) {
  const std::string bytes = encode_listing(*list_images(data_.path()).listing());
  ASSERT_TRUE(decode_listing(checked(bytes), ""));
  const std::size_t name = bytes.find("cat/a.png");
  for (const char* wrong : {"../a.png/", "/at/a.png", "cat/./png", "cat//.png", "dog/a.png"}) {
    std::string changed = bytes;
    changed.replace(name, 9, wrong, 9);
    EXPECT_FALSE(decode_listing(checked(changed), "").ok()) << wrong;
  }
}

TEST_F(FolderIndexTest, FalseCountsAllocateNoMemory) {
  const std::string bytes = encode_listing(*list_images(data_.path()).listing());
  for (std::size_t at = 8; at + 16 <= bytes.size(); ++at) {
    std::string changed = bytes;
    changed.replace(at, 8, std::string(8, '\x7f'));
    (void)decode_listing(checked(changed), "");
  }
}

}  // namespace
}  // namespace penstock
