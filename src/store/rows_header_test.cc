#include "store/rows_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

using testing::HasSubstr;

RowsHeader example() {
  RowsHeader header;
  header.data.digests = {"order", "values"};
  ElementSpec part = ElementSpec::dict({{"image", Dtype::u8, {kUnknown, 3}},
                                        {"label", Dtype::i64, {}},
                                        {"name", Dtype::string, {}}});
  header.data.spec = ElementSpec::tuple({part, ElementSpec::single(Dtype::f16, {2, 2})});
  header.data.place = "place-1-2-3";
  header.rows = 17;
  header.build = UINT64_MAX;
  header.version = "1.2";
  return header;
}

TEST(RowsHeaderTest, ItIsReadAsItWasWritten) {
  RowsHeader header = example();
  for (const bool complete : {false, true}) {
    header.complete = complete;
    auto back = parse_rows_header(header.text());
    ASSERT_TRUE(back) << back.failure().message;
    EXPECT_EQ(back->text(), header.text());
    EXPECT_EQ(back->data.spec, header.data.spec);
    EXPECT_EQ(back->data_number(), header.data_number());
  }
  header.rows.reset();
  header.data.spec = ElementSpec::unknown();
  auto back = parse_rows_header(header.text());
  ASSERT_TRUE(back);
  EXPECT_FALSE(back->rows);
  EXPECT_FALSE(back->data.spec.known);
}

TEST(RowsHeaderTest, OtherDataHasAnotherNumber) {
  const RowsHeader header = example();
  RowsHeader other = header;
  other.data.digests.values = "other";
  EXPECT_NE(other.data_number(), header.data_number());
  other = header;
  other.data.spec.fields[0].dtype = Dtype::i8;
  EXPECT_NE(other.data_number(), header.data_number());
  other = header;
  other.build = 3;
  EXPECT_NE(other.data_number(), header.data_number());
  EXPECT_EQ(other.data.number(), header.data.number());
}

TEST(RowsHeaderTest, EveryCutAndEveryChangedByteIsNoticed) {
  const std::string text = example().text();
  for (std::size_t size = 0; size + 2 < text.size(); ++size)
    EXPECT_FALSE(parse_rows_header(text.substr(0, size))) << size;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    auto back = parse_rows_header(changed);
    if (back) {
      EXPECT_EQ(back->text(), text) << "white space";
    }
  }
}

TEST(RowsHeaderTest, OtherFilesAndNewerFormatsAreNamed) {
  EXPECT_THAT(parse_rows_header("{\"name\": 3}").failure().message, HasSubstr("did not write"));
  EXPECT_THAT(parse_rows_header("{\"penstock\": \"rows\", \"format\": 2}").failure().message,
              HasSubstr("format 2"));
  EXPECT_THAT(parse_rows_header("[1]").failure().message, HasSubstr("damaged"));
}

TEST(RowsHeaderTest, ASpecOfImpossibleSizesIsRefused) {
  RowsHeader header = example();
  header.data.spec = ElementSpec::single(Dtype::f64, {std::int64_t{1} << 40, 1 << 30});
  EXPECT_FALSE(parse_rows_header(header.text()));
}

}  // namespace
}  // namespace penstock
