#include "record/csv_scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/scan_for_tests.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The same for pieces of every size.
Scanned scan_csv(std::string_view text, const CsvFormat& format = {}, bool header = true) {
  CsvScanner whole(format, header);
  Scanned scanned = scan_all(whole, text, text.size() + 1);
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    CsvScanner scanner(format, header);
    EXPECT_EQ(scan_all(scanner, text, piece), scanned) << piece;
  }
  return scanned;
}

TEST(CsvScannerTest, RecordsAreLinesAfterTheHeader) {
  const Scanned scanned = scan_csv("a,b\n1,2\r\n\n3,4\n\r\n5,6");
  EXPECT_EQ(scanned.preface, "a,b\n");
  EXPECT_THAT(scanned.records, ElementsAre("1,2\r\n\n", "3,4\n\r\n", "5,6"));
  EXPECT_THAT(scan_csv("a,b\n1,2\n", {}, false).records, ElementsAre("a,b\n", "1,2\n"));
  EXPECT_EQ(scan_csv("\xEF\xBB\xBF\r\n\na,b\r\n1,2\n").preface, "\xEF\xBB\xBF\r\n\na,b\r\n");
}

TEST(CsvScannerTest, FilesWithoutRecordsHaveNone) {
  for (const char* const text : {"", "a,b", "a,b\n", "a,b\r\n\r\n\n", "\n", "\r", "\"a\nb\",c\n"})
    EXPECT_THAT(scan_csv(text).records, IsEmpty()) << text;
}

TEST(CsvScannerTest, LineEndsWithinQuotesEndNoRecord) {
  EXPECT_THAT(scan_csv("a\n\"1\n2\"\n\"x\"\"\n\"\"\"\n,\"\n\"\r\n").records,
              ElementsAre("\"1\n2\"\n", "\"x\"\"\n\"\"\"\n", ",\"\n\"\r\n"));
  EXPECT_EQ(scan_csv("\"a\nb\",\"\"\"\n\"\n1,2\n").preface, "\"a\nb\",\"\"\"\n\"\n");
}

TEST(CsvScannerTest, AQuoteInsideAFieldIsText) {
  EXPECT_THAT(scan_csv("a\n5\" pipe\n\"x\"y\"\nz\"\n \"\n").records,
              ElementsAre("5\" pipe\n", "\"x\"y\"\n", "z\"\n", " \"\n"));
  EXPECT_THAT(scan_csv("a\n\"1\n2\"\n", {.quote = '\0'}).records, ElementsAre("\"1\n", "2\"\n"));
  EXPECT_THAT(scan_csv("a\n'1\n2';'\n'\n", {.delimiter = ';', .quote = '\''}).records,
              ElementsAre("'1\n2';'\n'\n"));
}

TEST(CsvScannerTest, AQuotedFieldThatNeverEndsIsDamage) {
  const Scanned scanned = scan_csv("a\n1\n\"2\n3\n");
  EXPECT_THAT(scanned.records, ElementsAre("1\n", "\"2\n3\n"));
  EXPECT_THAT(scanned.damage, HasSubstr("byte 4 of the file"));
  EXPECT_EQ(scan_csv("a\n\"2\n3\"").damage, "");
  const Scanned header = scan_csv("\xEF\xBB\xBF\n\"a,b\n1,2\n");
  EXPECT_THAT(header.records, ElementsAre("\"a,b\n1,2\n"));
  EXPECT_THAT(header.damage, HasSubstr("byte 4"));
}

TEST(CsvScannerTest, AnOpenQuoteIsFollowedUpToTheNextOneOnly) {
  // The quote before "c" ends the broken field; what follows on its line belongs to it.
  EXPECT_THAT(scan_csv("a,b\n1,\"x\n2,y\n3,\"c\",\"d\"\n4,z\n").records,
              ElementsAre("1,\"x\n2,y\n3,\"c\",\"d\"\n", "4,z\n"));
}

TEST(CsvScannerTest, CommentsAreLinesOfTheirOwn) {
  const CsvFormat format{.comment = '#'};
  const Scanned scanned = scan_csv("# one\n\na,b\n#\"two\n1,#2\n#\n\"\n#3\",4\n#", format);
  EXPECT_EQ(scanned.preface, "# one\n\na,b\n#\"two\n");
  EXPECT_THAT(scanned.records, ElementsAre("1,#2\n#\n", "\"\n#3\",4\n#"));
}

TEST(CsvScannerTest, AReturnThatEndsNoLineIsTextUnlessItBeginsOne) {
  EXPECT_THAT(scan_csv("a\r\"\n\r\r\n\r\"1\n2\"\n", {}, false).records,
              ElementsAre("a\r\"\n\r\r\n\r", "\"1\n2\"\n"));
  EXPECT_THAT(scan_csv("a\r1\r2\r").records, IsEmpty());
}

}  // namespace
}  // namespace penstock
