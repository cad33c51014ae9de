#include "store/row_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t kSalt = 7;

/// The start of a file and the frames of rows 0 to `rows` - 1, of different sizes.
std::string file_of(std::uint64_t rows, std::uint64_t salt, std::size_t bytes = 5) {
  std::string text = row_file_start({salt, 1});
  const ElementSpec spec = ElementSpec::single(Dtype::bytes);
  const RowCodec codec(spec);
  for (std::uint64_t row = 0; row < rows; ++row) {
    Scratch scratch;
    const ScratchBlock block(spec, 1, scratch);
    EXPECT_FALSE(write_row(block.view(), 0, Tensor::bytes(std::string(bytes + row, 'a'))));
    block.view().identity.sample_id[0] = row;
    block.view().identity.occurrence[0] = 0;
    RowFrames frames;
    EXPECT_TRUE(codec.encode(block.view(), 0, row, salt, frames));
    for (const std::string_view part : frames.parts) text += part;
  }
  return text;
}

struct Scanned {
  std::vector<std::uint64_t> numbers;
  std::uint64_t end = 0;
};
Scanned scan(const std::string& text, std::uint64_t from = kRowFileStartBytes) {
  const TempFolder folder;
  const FileHandle file(folder.write("file", text));
  std::vector<StoredRow> rows;
  const auto end = scan_rows(Io::real(), file, kSalt, from, text.size(), rows);
  EXPECT_TRUE(end);
  Scanned scanned;
  for (const StoredRow& row : rows) {
    EXPECT_LE(row.offset + kRowHeaderBytes + row.payload_bytes, text.size());
    scanned.numbers.push_back(row.number);
  }
  scanned.end = *end;
  return scanned;
}

TEST(RowFileTest, AllFramesAreFoundWhateverTheirSize) {
  for (const std::size_t bytes : {1U, 100U, 300'000U}) {
    const std::string text = file_of(4, kSalt, bytes);
    EXPECT_THAT(scan(text).numbers, ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(scan(text).end, text.size());
  }
  EXPECT_THAT(scan(file_of(0, kSalt)).numbers, ElementsAre());
  EXPECT_THAT(scan(file_of(3, kSalt + 1)).numbers, ElementsAre()) << "of another file";
}

TEST(RowFileTest, AFileThatWasCutAnywhereHasTheCompleteFrames) {
  const std::string text = file_of(3, kSalt);
  for (std::size_t size = kRowFileStartBytes; size < text.size(); ++size) {
    const Scanned scanned = scan(text.substr(0, size));
    for (std::uint64_t i = 0; i < scanned.numbers.size(); ++i) EXPECT_EQ(scanned.numbers[i], i);
    // What is appended later continues where this scan ended.
    const Scanned rest = scan(text, scanned.end);
    EXPECT_EQ(scanned.numbers.size() + rest.numbers.size(), 3U) << size;
  }
}

TEST(RowFileTest, ADamagedHeaderHidesOnlyItsOwnRow) {
  const std::string text = file_of(5, kSalt);
  const Scanned good = scan(text);
  for (std::size_t i = kRowFileStartBytes; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_GE(scan(changed).numbers.size(), 4U) << i;
  }
  const std::string hole = text.substr(0, kRowFileStartBytes) + std::string(4096, '\0') +
                           text.substr(kRowFileStartBytes);
  EXPECT_EQ(scan(hole).numbers, good.numbers);
}

TEST(RowFileTest, ARowFileInsideAPayloadIsNotTakenForFrames) {
  const std::string inner = file_of(3, kSalt + 1);
  std::string text = file_of(1, kSalt, 4000);
  text.replace(kRowFileStartBytes + kRowHeaderBytes + 16, inner.size(), inner);
  EXPECT_THAT(scan(text).numbers, ElementsAre(0));
  text[kRowFileStartBytes] ^= 1;  // now the payload is searched
  EXPECT_THAT(scan(text).numbers, ElementsAre());
}

TEST(RowFileTest, AnIndexIsReadAsItWasWrittenOrRefused) {
  const RowFileStart start{3, 4};
  const RowFileIndex index{start, 400, {{0, 32, 10}, {7, 88, 200}}};
  const std::string text = row_file_index_text(index);
  const auto back = parse_row_file_index(text, start, 400);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->rows.size(), 2U);
  EXPECT_EQ(back->rows[1].number, 7U);
  EXPECT_EQ(back->end, 400U);
  EXPECT_FALSE(parse_row_file_index(text, {3, 5}, 400)) << "of other data";
  EXPECT_FALSE(parse_row_file_index(text, {4, 4}, 400)) << "of another file";
  EXPECT_FALSE(parse_row_file_index(text, start, 300)) << "the file was cut";
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(parse_row_file_index(text.substr(0, size), start, 400));
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(parse_row_file_index(changed, start, 400)) << i;
  }
  const RowFileIndex beyond{start, 400, {{0, 390, 10}}};
  EXPECT_FALSE(parse_row_file_index(row_file_index_text(beyond), start, 400));
}

}  // namespace
}  // namespace penstock
