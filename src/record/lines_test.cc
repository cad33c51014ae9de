#include "record/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/scan_for_tests.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The same for pieces of every size.
Scanned scan_lines(std::string_view text, bool skip_blank) {
  LineScanner whole(skip_blank);
  Scanned scanned = scan_all(whole, text, text.size() + 1);
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    LineScanner scanner(skip_blank);
    EXPECT_EQ(scan_all(scanner, text, piece), scanned) << piece;
  }
  return scanned;
}

TEST(LineScannerTest, EachLineIsARecordAndTheLastOneMayHaveNoEnd) {
  EXPECT_THAT(scan_lines("one\n\r\n\nfour\rstill\nlast", false).records,
              ElementsAre("one\n", "\r\n", "\n", "four\rstill\n", "last"));
  EXPECT_THAT(scan_lines("one\n", false).records, ElementsAre("one\n"));
  EXPECT_THAT(scan_lines("\n", false).records, ElementsAre("\n"));
  EXPECT_THAT(scan_lines("", false).records, IsEmpty());
}

TEST(LineScannerTest, BlankLinesBelongToTheRecordBefore) {
  const Scanned scanned = scan_lines("\n  \r\n {}\n\n\t\n {1}\r\n{2}  \n \n", true);
  EXPECT_EQ(scanned.preface, "\n  \r\n ");
  EXPECT_THAT(scanned.records, ElementsAre("{}\n\n\t\n ", "{1}\r\n", "{2}  \n \n"));
  EXPECT_THAT(scan_lines(" \n\n", true).records, IsEmpty());
}

TEST(LineScannerTest, AByteOrderMarkBelongsToNoRecord) {
  const Scanned scanned = scan_lines("\xEF\xBB\xBFmarked\n\xEF\xBB\xBFtwo", false);
  EXPECT_EQ(scanned.preface, kByteOrderMark);
  EXPECT_THAT(scanned.records, ElementsAre("marked\n", "\xEF\xBB\xBFtwo"));
  EXPECT_THAT(scan_lines("\xEF\xBB\xBF", false).records, IsEmpty());
  EXPECT_THAT(scan_lines("\xEF\xBBx\ny", false).records, ElementsAre("\xEF\xBBx\n", "y"));
  EXPECT_THAT(scan_lines("\xEF", false).records, ElementsAre("\xEF"));
  EXPECT_THAT(scan_lines("\xEF\n", false).records, ElementsAre("\xEF\n"));
}

TEST(LineScannerTest, ManyShortLinesAreAllFound) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::string(static_cast<std::size_t>(i % 7), 'x') + "\n";
  EXPECT_EQ(scan_lines(text.substr(0, 500), false).records.size(), 126U);
  LineScanner scanner(false);
  EXPECT_EQ(scan_all(scanner, text, 64).records.size(), 1000U);
}

class LineDecoderTest : public ::testing::Test {
 protected:
  Result<std::string> line(std::string_view bytes, std::shared_ptr<const void> owner = {}) {
    const auto decoder = lines_kind().decoder({});
    Scratch scratch;
    const ScratchBlock block(decoder->spec(), 2, scratch);
    auto done = decoder->decode({bytes, std::move(owner)}, block.view(), 1, scratch);
    if (!done) return std::move(done.failure());
    const Sample sample = read_row(block.view(), 1);
    lent_ = sample.tensor().text().data() == bytes.data();
    return std::string(sample.tensor().text());
  }
  bool lent_ = false;
};

TEST_F(LineDecoderTest, ALineIsWithoutItsEnd) {
  EXPECT_EQ(*line("one\n"), "one");
  EXPECT_EQ(*line("two\r\n"), "two");
  EXPECT_EQ(*line("three\r"), "three\r");
  EXPECT_EQ(*line("\r\n"), "");
  EXPECT_EQ(*line("\xC3\xA4hm"), "\xC3\xA4hm");
}

TEST_F(LineDecoderTest, ALineIsAViewOfBytesThatHaveAnOwner) {
  const auto owner = std::make_shared<const std::string>("kept\n");
  EXPECT_EQ(*line(*owner, owner), "kept");
  EXPECT_TRUE(lent_);
  EXPECT_EQ(*line(*owner), "kept");
  EXPECT_FALSE(lent_);
}

TEST_F(LineDecoderTest, ALineThatIsNotUtf8FailsWithThePosition) {
  const auto failed = line("0123\xFF\n");
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.failure().message, AllOf(HasSubstr("UTF-8"), HasSubstr("byte 4")));
}

}  // namespace
}  // namespace penstock
