#include "record/tfrecord.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string file_of(const std::vector<std::string>& payloads) {
  std::string file;
  for (const std::string& payload : payloads) append_tfrecord(file, payload);
  return file;
}

struct Scanned {
  std::vector<std::uint64_t> starts;
  ScanEnd end;
  std::uint64_t seen = 0;  // bytes that the scanner was shown
  std::vector<std::string> records;
};

/// Shows `file` to a scanner in pieces of `piece_bytes`.
Scanned scan(const std::string& file, std::size_t piece_bytes) {
  const auto scanner = make_tfrecord_scanner();
  Scanned out;
  std::uint64_t at = 0;
  while (at < file.size()) {
    const std::string_view piece = std::string_view(file).substr(at, piece_bytes);
    out.seen += piece.size();
    at += piece.size();
    const std::uint64_t skip = scanner->scan(at - piece.size(), piece, out.starts);
    if (skip >= file.size() - at) break;
    at += skip;
  }
  out.end = scanner->finish(file.size(), out.starts);
  for (std::size_t i = 0; i < out.starts.size(); ++i) {
    const std::uint64_t end = i + 1 < out.starts.size() ? out.starts[i + 1] : out.end.end;
    out.records.push_back(file.substr(out.starts[i], end - out.starts[i]));
  }
  return out;
}

std::string reason(const std::string& record) {
  const auto payload = tfrecord_payload(record);
  return payload ? "none" : payload.failure().message;
}

TEST(TfrecordTest, TheBytesOfARecordAreThoseOfTheFormat) {
  const std::string record = file_of({"abc"});
  EXPECT_EQ(record.size(), 3 + kTfrecordBytes);
  EXPECT_EQ(record.substr(0, 8), std::string("\x03\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 3), "abc");
  EXPECT_EQ(*tfrecord_payload(record), "abc");
  // The beginning of every event file of TensorBoard.
  EXPECT_EQ(file_of({std::string(24, 'x')}).substr(0, 12),
            std::string("\x18\0\0\0\0\0\0\0\xa3\x7fK\"", 12));
}

TEST(TfrecordTest, PiecesOfAnySizeShowTheSameRecords) {
  const std::vector<std::string> payloads{"one", "", std::string(100, 'x'), "four"};
  const std::string file = file_of(payloads);
  for (std::size_t piece = 1; piece <= file.size(); ++piece) {
    const Scanned found = scan(file, piece);
    ASSERT_THAT(found.starts, ElementsAre(0, 19, 35, 151)) << piece;
    EXPECT_EQ(found.end.end, file.size());
    EXPECT_THAT(found.end.damage, IsEmpty());
    for (std::size_t i = 0; i < payloads.size(); ++i)
      EXPECT_EQ(*tfrecord_payload(found.records[i]), payloads[i]);
  }
}

TEST(TfrecordTest, PayloadsNeedNotBeSeen) {
  const std::string file = file_of({std::string(10'000, 'a'), std::string(10'000, 'b')});
  EXPECT_LT(scan(file, 16).seen, 64U);
}

TEST(TfrecordTest, AnEmptyFileHasNoRecords) {
  const Scanned found = scan("", 16);
  EXPECT_THAT(found.starts, IsEmpty());
  EXPECT_EQ(found.end.end, 0U);
  EXPECT_THAT(found.end.damage, IsEmpty());
}

TEST(TfrecordTest, AFileThatEndsAnywhereWithinARecordEndsWithADamagedOne) {
  const std::string whole = file_of({"first", "the second"});
  for (std::size_t bytes = 22; bytes < whole.size(); ++bytes) {
    for (const std::size_t piece : {1U, 5U, 64U}) {
      const Scanned found = scan(whole.substr(0, bytes), piece);
      ASSERT_THAT(found.starts, ElementsAre(0, 21)) << bytes;
      EXPECT_EQ(found.end.end, bytes);
      EXPECT_THAT(found.end.damage, HasSubstr("the file ends after"));
      EXPECT_EQ(*tfrecord_payload(found.records[0]), "first");
      EXPECT_EQ(reason(found.records[1]), found.end.damage);
    }
  }
}

TEST(TfrecordTest, AWrongLengthMakesTheRestOfTheFileOneDamagedRecord) {
  for (std::size_t byte = 21; byte < 33; ++byte) {
    std::string file = file_of({"first", "second", "third"});
    file[byte] = static_cast<char>(file[byte] ^ 8);
    const Scanned found = scan(file, 7);
    ASSERT_THAT(found.starts, ElementsAre(0, 21));
    EXPECT_EQ(found.end.end, file.size());
    EXPECT_EQ(reason(found.records[1]), found.end.damage);
    EXPECT_THAT(found.end.damage, HasSubstr("checksum of its length is wrong"));
  }
}

TEST(TfrecordTest, AChangedPayloadFailsAndTheNextRecordDoesNot) {
  for (std::size_t byte = 33; byte < 43; ++byte) {
    std::string file = file_of({"first", "second", "third"});
    file[byte] = static_cast<char>(file[byte] ^ 1);
    const Scanned found = scan(file, 64);
    ASSERT_EQ(found.starts.size(), 3U);
    EXPECT_THAT(found.end.damage, IsEmpty());
    EXPECT_THAT(reason(found.records[1]), HasSubstr("checksum of its 6 bytes is wrong"));
    EXPECT_EQ(*tfrecord_payload(found.records[2]), "third");
  }
}

/// A record that claims `bytes` of payload, with the right checksum.
std::string claim(std::uint64_t bytes) {
  std::string length(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  const std::string checksum = file_of({length}).substr(12 + 8, 4);
  return length + checksum;
}

TEST(TfrecordTest, ALengthBeyondTheEndOfTheFileIsDamageAndNeedsNoMemory) {
  for (const std::uint64_t bytes :
       {std::uint64_t{1} << 60, UINT64_MAX, UINT64_MAX - 16, UINT64_MAX - 40, std::uint64_t{7}}) {
    const Scanned found = scan(file_of({"first"}) + claim(bytes) + "abc", 64);
    ASSERT_THAT(found.starts, ElementsAre(0, 21));
    EXPECT_EQ(found.end.end, 36U);
    EXPECT_THAT(found.end.damage, HasSubstr("the file ends after 15 bytes of a record"));
    EXPECT_EQ(reason(found.records[1]), found.end.damage);
  }
}

TEST(TfrecordTest, OneRecordHasNothingAfterIt) {
  EXPECT_EQ(reason(file_of({"first"}) + "ab"), "2 bytes follow the record");
  EXPECT_THAT(reason(""), HasSubstr("after 0 bytes"));
}

}  // namespace
}  // namespace penstock
