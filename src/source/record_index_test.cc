#include "source/record_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/temp_folder_for_tests.h"
#include "record/words_kind_for_tests.h"

namespace penstock {
namespace {

using testing::ElementsAreArray;

FileHandle handle_of(const std::string& path) {
  const auto entry = Io::real().look(path);
  return {path, (*entry).bytes, (*entry).modified_ns};
}

RecordIndex scanned(const FileHandle& file) {
  WordScanner scanner;
  auto index = scan_records(Io::real(), file, scanner, [](std::uint64_t) { return true; });
  EXPECT_TRUE(index);
  return std::move(*index);
}

TEST(RecordStartsTest, KeepsEveryBeginningAlsoAcrossGapsOfGigabytes) {
  std::mt19937_64 random(1);
  for (const std::uint64_t gap_max : {10ULL, 1ULL << 20, 1ULL << 33}) {
    std::vector<std::uint64_t> expected;
    RecordStarts starts;
    std::uint64_t at = random() % 100;
    for (int i = 0; i < 3000; ++i) {
      expected.push_back(at);
      starts.add(at);
      at += 1 + random() % gap_max;
    }
    ASSERT_EQ(starts.size(), expected.size());
    std::vector<std::uint64_t> kept;
    for (std::size_t i = 0; i < starts.size(); ++i) kept.push_back(starts[i]);
    EXPECT_THAT(kept, ElementsAreArray(expected));
    if (gap_max <= 1 << 20) {
      EXPECT_LT(starts.memory_bytes(), 3000 * 8);
    }
  }
}

TEST(RecordIndexTest, RecordsReachToTheNextOneAndTheLastToTheEnd) {
  const TempFolder folder;
  const FileHandle file = handle_of(folder.write("a", "pre|one;two;three"));
  const RecordIndex index = scanned(file);
  ASSERT_EQ(index.size(), 3U);
  EXPECT_EQ(index.preface_bytes(), 4U);
  EXPECT_EQ(index.at(1).offset, 8U);
  EXPECT_EQ(index.at(1).bytes, 4U);
  EXPECT_EQ(index.at(2).bytes, 5U);
}

TEST(RecordIndexTest, FilesLargerThanAPieceAreScannedWhole) {
  const TempFolder folder;
  std::string text = "|";
  for (int i = 0; i < 400'000; ++i) text += "word" + std::to_string(i) + ";";
  const FileHandle file = handle_of(folder.write("a", text));
  const RecordIndex index = scanned(file);
  ASSERT_EQ(index.size(), 400'000U);
  EXPECT_EQ(text.substr(index.at(399'999).offset, index.at(399'999).bytes), "word399999;");
}

TEST(RecordIndexTest, AStoredIndexIsUsedForItsFileOnly) {
  const TempFolder folder;
  const FileHandle file = handle_of(folder.write("a", "|one;two;!three"));
  const RecordIndex index = scanned(file);
  const std::string bytes = encode_index(index, file, 7, "words");
  const auto again = decode_index(bytes, file, 7, "words");
  ASSERT_TRUE(again);
  ASSERT_EQ(again->size(), index.size());
  EXPECT_EQ(again->damage, "an exclamation mark");
  for (std::uint64_t i = 0; i < index.size(); ++i) {
    EXPECT_EQ(again->at(i).offset, index.at(i).offset);
    EXPECT_EQ(again->at(i).bytes, index.at(i).bytes);
  }
  EXPECT_FALSE(decode_index(bytes, file, 8, "words"));
  EXPECT_FALSE(decode_index(bytes, file, 7, "other words"));
  const FileHandle touched(file.path(), file.bytes(), file.modified_ns() + 1);
  EXPECT_FALSE(decode_index(bytes, touched, 7, "words"));
  const FileHandle longer(file.path(), file.bytes() + 1, file.modified_ns());
  EXPECT_FALSE(decode_index(bytes, longer, 7, "words"));
}

TEST(RecordIndexTest, AnyOtherBytesAreNoIndex) {
  const TempFolder folder;
  const FileHandle file = handle_of(folder.write("a", "|one;two;three;four"));
  const std::string bytes = encode_index(scanned(file), file, 7, "words");
  for (std::size_t cut = 0; cut < bytes.size(); ++cut)
    EXPECT_FALSE(decode_index(bytes.substr(0, cut), file, 7, "words")) << cut;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_FALSE(decode_index(damaged, file, 7, "words")) << at;
  }
}

TEST(RecordIndexTest, ScanningStopsWhenItIsCancelled) {
  const TempFolder folder;
  const FileHandle file = handle_of(folder.write("a", "|one;two"));
  WordScanner scanner;
  const auto index = scan_records(Io::real(), file, scanner, [](std::uint64_t) { return false; });
  ASSERT_FALSE(index);
  EXPECT_TRUE(index.failure().cancelled());
}

TEST(RecordIndexTest, FilesOfOneSizeDifferInTheirContentDigest) {
  const TempFolder folder;
  std::string text(100'000, 'x');
  const auto first = content_digest(Io::real(), handle_of(folder.write("a", text)));
  text.back() = 'y';
  const auto second = content_digest(Io::real(), handle_of(folder.write("b", text)));
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_NE(*first, *second);
  EXPECT_TRUE(content_digest(Io::real(), handle_of(folder.write("empty", ""))).ok());
}

}  // namespace
}  // namespace penstock
