#include "source/record_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "record/compressed_for_tests.h"
#include "record/words_kind_for_tests.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RecordStreamTest : public testing::Test {
 protected:
  void add(const std::string& name, const std::string& bytes, Compression compression) {
    const std::string path = folder_.write(name, bytes);
    const auto entry = Io::real().look(path);
    files_.files.push_back(
        {std::make_shared<const FileHandle>(path, (*entry).bytes, (*entry).modified_ns),
         compression});
  }
  /// "file.number word", or "file.number FAILURE".
  std::vector<std::string> rest(RecordStream& stream) {
    std::vector<std::string> all;
    while (const auto record = stream.next())
      all.push_back(std::to_string(record->file) + "." + std::to_string(record->number) + " " +
                    (record->failure ? record->failure->message : std::string(record->bytes)));
    return all;
  }
  std::vector<std::string> all() {
    RecordStream stream(Io::real(), files_);
    return rest(stream);
  }

  const TempFolder folder_;
  StreamedFiles files_{words_kind(), {}};
};

TEST_F(RecordStreamTest, RecordsOfAllFilesComeInOrder) {
  add("a.gz", for_tests::stored_gzip("pre|one;two"), Compression::gzip);
  add("b", "|", Compression::none);
  add("c", "|three;", Compression::none);
  EXPECT_THAT(all(), ElementsAre("0.0 one;", "0.1 two", "2.0 three;"));
}

TEST_F(RecordStreamTest, RecordsOfManyPiecesEqualThoseOfTheText) {
  std::string text = "|";
  std::vector<std::string> expected;
  for (int i = 0; i < 200'000; ++i) {
    const std::string word = "word" + std::to_string(i * 7919 % 100'003) + ";";
    text += word;
    expected.push_back("0." + std::to_string(i) + " " + word);
  }
  add("a.gz", for_tests::stored_gzip(text), Compression::gzip);
  EXPECT_EQ(all(), expected);
}

TEST_F(RecordStreamTest, SkippingArrivesAtTheSameRecords) {
  add("a.gz", for_tests::stored_gzip("|0;1;2;3;4"), Compression::gzip);
  add("b", "|5;6", Compression::none);
  const auto whole = all();
  for (std::size_t file = 0; file < 2; ++file)
    for (std::uint64_t number = 0; number <= (file == 0 ? 5U : 2U); ++number) {
      RecordStream stream(Io::real(), files_);
      stream.skip_to(file, number);
      const std::size_t before = number + (file == 0 ? 0 : 5);
      EXPECT_EQ(rest(stream),
                std::vector<std::string>(whole.begin() + static_cast<std::ptrdiff_t>(before),
                                         whole.end()));
    }
}

TEST_F(RecordStreamTest, AFileThatEndsInTheMiddleFailsOnceAndTheNextFollows) {
  std::string text = "|";
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919 % 100'003) + ";";
  const std::string whole = for_tests::stored_gzip(text);
  add("a.gz", whole.substr(0, whole.size() / 2), Compression::gzip);
  add("b", "|next", Compression::none);
  const auto records = all();
  ASSERT_GT(records.size(), 2U);
  EXPECT_EQ(records.back(), "1.0 next");
  EXPECT_THAT(records[records.size() - 2], HasSubstr("ends"));
}

TEST_F(RecordStreamTest, ARecordAboveTheLimitFailsAndIsNotKeptInMemory) {
  add("a", "|one;" + std::string(3'000'000, 'x') + ";two", Compression::none);
  files_.record_bytes_max = 1000;
  const auto records = all();
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0], "0.0 one;");
  EXPECT_THAT(records[1], HasSubstr("3000001 bytes, more than the limit of 1000"));
  EXPECT_EQ(records[2], "0.2 two");
}

TEST_F(RecordStreamTest, ThePrefaceIsKnownWithTheFirstRecord) {
  add("a", "pre|one", Compression::none);
  RecordStream stream(Io::real(), files_);
  ASSERT_TRUE(stream.next());
  EXPECT_EQ(stream.preface(), "pre|");
}

}  // namespace
}  // namespace penstock
