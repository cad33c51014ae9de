#include "record/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "penstock/error.h"
#include "record/csv_fields.h"
#include "record/records_for_tests.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

TextRecords csv(std::string_view text, const CsvOptions& options = {}) {
  return {csv_kind(options), text};
}

#define EXPECT_REFUSED(what, ...) \
  EXPECT_THAT([&] { (void)(what); }, ThrowsMessage<ConfigError>(AllOf(__VA_ARGS__)))

TEST(CsvTest, TypesAreInferredFromTheFirstRecords) {
  const TextRecords records =
      csv("id,x,ok,name,big\r\n"
          "1,0.5,true,ann,18446744073709551615\r\n"
          "-2, 1e3 ,False,\"7\"\"x\",1");
  EXPECT_EQ(records.spec(), "{big: u64[], id: i64[], name: string[], ok: bool[], x: f32[]}");
  EXPECT_THAT(records.column<std::int64_t>("id"), ElementsAre(1, -2));
  EXPECT_THAT(records.column<float>("x"), ElementsAre(0.5F, 1000.0F));
  EXPECT_THAT(records.column<bool>("ok"), ElementsAre(true, false));
  EXPECT_THAT(records.column<std::uint64_t>("big"), ElementsAre(UINT64_MAX, 1U));
  EXPECT_THAT(records.texts("name"), ElementsAre("ann", "7\"x"));
  EXPECT_EQ(csv("x\n1.5\n", {.floats = Dtype::f64}).spec(), "{x: f64[]}");
}

TEST(CsvTest, FieldsAreAsRfc4180Says) {
  const TextRecords records =
      csv("a,b,c\n"
          "\"1\",\"x,y\",\"line\r\nbreak\"\r\n"
          "\n"
          "2,it's 5\",\"\"\n"
          "\"3\",\"\"\"\",\" z \"\r\n\r\n");
  EXPECT_THAT(records.column<std::int64_t>("a"), ElementsAre(1, 2, 3));
  EXPECT_THAT(records.texts("b"), ElementsAre("x,y", "it's 5\"", "\""));
  EXPECT_THAT(records.texts("c"), ElementsAre("line\r\nbreak", "", " z "));
}

TEST(CsvTest, OtherFormatsAreReadWithOptions) {
  const TextRecords records = csv("# made by hand\na\tb\n1\t'x\t''y'\n# more\n2\t#z\n",
                                  {.delimiter = '\t', .quote = '\'', .comment = '#'});
  EXPECT_THAT(records.column<std::int64_t>("a"), ElementsAre(1, 2));
  EXPECT_THAT(records.texts("b"), ElementsAre("x\t'y", "#z"));
  EXPECT_THAT(csv("a\n\"x\n", {.quote = '\0'}).texts("a"), ElementsAre("\"x"));
}

TEST(CsvTest, NamesComeFromTheHeaderTheOptionsOrTheirNumbers) {
  EXPECT_EQ(csv("\xEF\xBB\xBFid,\"the name\"\n1,2\n").spec(), "{id: i64[], the name: i64[]}");
  EXPECT_EQ(csv(",x\n1,2\n").spec(), "{column0: i64[], x: i64[]}");
  EXPECT_EQ(csv("1,a\n", {.header = false}).spec(), "{column0: i64[], column1: string[]}");
  EXPECT_EQ(csv("1,a\n", {.header = false, .names = {"n", "t"}}).spec(), "{n: i64[], t: string[]}");
  EXPECT_EQ(csv("x,x\n1,a\n", {.names = {"n", "t"}}).spec(), "{n: i64[], t: string[]}");
  EXPECT_REFUSED(csv("x,y\n1,2\n", {.names = {"n"}}), HasSubstr("1 names for the 2 columns"));
  EXPECT_REFUSED(csv("", {}), HasSubstr("first.txt"), HasSubstr("names of columns"));
  EXPECT_REFUSED(csv("", {.header = false}), HasSubstr("no records"));
  EXPECT_REFUSED(csv("x,x\n1,2\n"), HasSubstr("two columns called \"x\""), HasSubstr("names={"));
  EXPECT_REFUSED(csv("\xFF\n1\n"), HasSubstr("\"\\xff\""), HasSubstr("names={"));
  EXPECT_THAT(csv("km/h\n1\n").column<std::int64_t>("km/h"), ElementsAre(1));
  EXPECT_REFUSED(csv("\xFF\xFEx\n1\n"), HasSubstr("UTF-16"));
  EXPECT_REFUSED(csv("a,\"b\"c\n1,2\n"), HasSubstr("header"), HasSubstr("column 2"));
}

TEST(CsvTest, OnlyChosenColumnsAreParsed) {
  const TextRecords records =
      csv("a,x,x,b\n1,\"no,number\",\xFF,2\n3,,,oops\n", {.columns = {"b", "a"}});
  EXPECT_EQ(records.spec(), "{a: i64[], b: string[]}");
  EXPECT_THAT(records.texts("b"), ElementsAre("2", "oops"));
  EXPECT_REFUSED(csv("a,b\n1,2\n", {.columns = {"c"}}), HasSubstr("columns names the column \"c\""),
                 HasSubstr("its columns are \"a\", \"b\""));
  // Their fields are counted all the same, and their quotes checked.
  const TextRecords broken = csv("a,b\n1,2\n3\n4,\"x\"y\n5,6,\n", {.columns = {"a"}});
  EXPECT_THAT(broken.failure(1), HasSubstr("has 1 fields, there are 2 columns"));
  EXPECT_THAT(broken.failure(2), HasSubstr("closing quote"));
  EXPECT_THAT(broken.failure(3), HasSubstr("has 3 fields"));
}

TEST(CsvTest, GivenTypesReplaceInference) {
  const TextRecords records =
      csv("id,zip,flag,raw,h\n7,00501,1,\xFF,0.5\n", {.types = {{"id", Dtype::u8},
                                                                {"zip", Dtype::string},
                                                                {"flag", Dtype::boolean},
                                                                {"raw", Dtype::bytes},
                                                                {"h", Dtype::f16}}});
  EXPECT_EQ(records.spec(), "{flag: bool[], h: f16[], id: u8[], raw: bytes[], zip: string[]}");
  EXPECT_THAT(records.texts("zip"), ElementsAre("00501"));
  EXPECT_THAT(records.texts("raw"), ElementsAre("\xFF"));
  EXPECT_THAT(records.column<bool>("flag"), ElementsAre(true));
  EXPECT_EQ(csv("a,b\n", {.types = {{"a", Dtype::i64}, {"b", Dtype::f32}}}).spec(),
            "{a: i64[], b: f32[]}");
  EXPECT_REFUSED(csv("a\n1\n", {.types = {{"b", Dtype::i64}}}), HasSubstr("types names"));
  EXPECT_REFUSED(csv("a\n"), HasSubstr("\"a\""), HasSubstr("no value in the first 0 records"));
}

TEST(CsvTest, MissingValuesFailOrBecomeWhatNullsSay) {
  constexpr std::string_view kText = "a,b,c\n1,x,1.5\n,NA,\nNA,\"\", nan \n\"\",,2\n";
  const TextRecords strict = csv(kText);
  EXPECT_EQ(strict.spec(), "{a: i64[], b: string[], c: f32[]}");
  EXPECT_THAT(strict.failure(1),
              AllOf(HasSubstr("column \"a\""), HasSubstr("missing"), HasSubstr("nulls={")));
  EXPECT_THAT(strict.failure(2), HasSubstr("missing (\"NA\")"));
  const TextRecords filled =
      csv(kText, {.nulls = {{"a", -1.0}, {"b", std::string("none")}, {"c", 0.5}}});
  EXPECT_THAT(filled.column<std::int64_t>("a"), ElementsAre(1, -1, -1, -1));
  EXPECT_THAT(filled.texts("b"), ElementsAre("x", "none", "", "none"));
  EXPECT_THAT(filled.column<float>("c"), ElementsAre(1.5F, 0.5F, 0.5F, 2.0F));
  const TextRecords text = csv("b\nNA\nx\n");
  EXPECT_THAT(text.texts("b"), ElementsAre("NA", "x"));
}

TEST(CsvTest, NullsDecideTheTypeThatIsInferred) {
  EXPECT_EQ(csv("a\n1\n", {.nulls = {{"a", 0.5}}}).spec(), "{a: f32[]}");
  EXPECT_EQ(csv("a\n1\n", {.nulls = {{"a", std::nan("")}}}).spec(), "{a: f32[]}");
  EXPECT_EQ(csv("a\n1\n", {.nulls = {{"a", 0.0}}}).spec(), "{a: i64[]}");
  EXPECT_EQ(csv("a,b\n1,\n", {.nulls = {{"b", std::string("")}}}).spec(),
            "{a: i64[], b: string[]}");
  EXPECT_REFUSED(csv("a\n1\n", {.nulls = {{"a", std::string("x")}}}), HasSubstr("\"a\" (i64[])"));
  EXPECT_REFUSED(csv("a\n1\n", {.nulls = {{"b", 0.0}}}), HasSubstr("nulls names"));
  EXPECT_EQ(csv("a,b\n1,x\n", {.columns = {"a"}, .nulls = {{"b", 0.0}}}).spec(), "{a: i64[]}");
}

TEST(CsvTest, TextsOfMissingValuesCanBeNumbers) {
  const TextRecords records =
      csv("a,b\n1,-999\n-999,2.5\n", {.nulls = {{"a", 0.0}, {"b", 7.0}}, .missing = {"-999"}});
  EXPECT_THAT(records.column<std::int64_t>("a"), ElementsAre(1, 0));
  EXPECT_THAT(records.column<float>("b"), ElementsAre(7.0F, 2.5F));
  EXPECT_THAT(csv("a\nnan\n1\n", {.missing = {}}).column<float>("a")[1], 1.0F);
}

TEST(CsvTest, AValueOfAnotherTypeFailsWithItsColumn) {
  const TextRecords records =
      csv("n,x,ok\n1,0.5,true\n2.5,1,true\n3,abc,true\n4,1e99,true\n5,6,yes\n99999999999999999999,"
          "1,true\n",
          {.infer_records = 1});
  EXPECT_THAT(records.failure(1), AllOf(HasSubstr("column \"n\": \"2.5\" is not of type i64"),
                                        HasSubstr("types={"), HasSubstr("skip")));
  EXPECT_THAT(records.failure(2), HasSubstr("column \"x\": \"abc\" is not of type f32"));
  EXPECT_THAT(records.failure(3), HasSubstr("\"1e99\" is out of the range of f32"));
  EXPECT_THAT(records.failure(4), HasSubstr("column \"ok\": \"yes\" is not of type bool"));
  EXPECT_THAT(records.failure(5), HasSubstr("out of the range of i64"));
  using std::string_view_literals::operator""sv;
  EXPECT_THAT(csv("n\n1\n7\0\n"sv, {.infer_records = 1}).failure(1),
              HasSubstr("\"7\\x00\" is not of type i64"));
  EXPECT_THAT(csv("n\n1\n" + std::string(1000, '7') + "\n", {.infer_records = 1}).failure(1),
              AllOf(HasSubstr("(1000 bytes)"), Not(HasSubstr(std::string(100, '7')))));
  EXPECT_THAT(csv("s\nx\n\xFFz\n").failure(1),
              AllOf(HasSubstr("column \"s\""), HasSubstr("not UTF-8 from its byte 0")));
}

TEST(CsvTest, RecordsOfAnotherSizeOrWithBrokenQuotesFail) {
  const TextRecords records = csv("a,b\n1,2\n3\n4,5,6\n\"7\"x,8\n9,\"x\n", {.infer_records = 1});
  EXPECT_THAT(records.failure(1), AllOf(HasSubstr("has 1 fields, there are 2 columns: \"3\""),
                                        HasSubstr("needs quotes")));
  EXPECT_THAT(records.failure(2), HasSubstr("has 3 fields"));
  EXPECT_THAT(records.failure(3), AllOf(HasSubstr("column \"a\": text follows its closing quote"),
                                        HasSubstr("written twice")));
  EXPECT_THAT(records.failure(4), HasSubstr("never end"));
}

TEST(CsvTest, FilesWithAnotherHeaderAreRefused) {
  const TextRecords records = csv("a,b\n1,2\n");
  const auto accept = [&](std::string_view preface) {
    auto accepted = records.decoder().accept(preface);
    return accepted ? "accepted" : accepted.failure().message;
  };
  EXPECT_EQ(accept("\xEF\xBB\xBF\n\"a\",b\r\n\n"), "accepted");
  EXPECT_EQ(accept(""), "accepted");
  EXPECT_THAT(accept("a,c\n"),
              AllOf(HasSubstr("its column 2 is \"c\", that of first.txt is \"b\"")));
  EXPECT_THAT(accept("a\n"), HasSubstr("it has 1 columns, first.txt has 2"));
  EXPECT_THAT(accept("b,a\n"), HasSubstr("column 1"));
  EXPECT_THAT(accept("a,\"b\n"), HasSubstr("header"));
}

TEST(CsvTest, OptionsThatContradictEachOtherAreRefused) {
  EXPECT_REFUSED(csv_kind({.delimiter = '\n'}), HasSubstr("delimiter"));
  EXPECT_REFUSED(csv_kind({.delimiter = '\0'}), HasSubstr("delimiter"));
  EXPECT_REFUSED(csv_kind({.delimiter = '5'}), HasSubstr("delimiter"));
  EXPECT_REFUSED(csv_kind({.quote = ','}), HasSubstr("the delimiter and the quote are the same"));
  EXPECT_REFUSED(csv_kind({.comment = '"'}), HasSubstr("the quote and the comment"));
  EXPECT_REFUSED(csv_kind({.floats = Dtype::i64}), HasSubstr("floats"));
  EXPECT_REFUSED(csv_kind({.infer_records = 0}), HasSubstr("infer_records"));
  EXPECT_NO_THROW((void)csv_kind({.delimiter = '|', .quote = '\0', .comment = '\0'}));
}

TEST(CsvTest, WhatValuesDependOnIsIdentified) {
  const auto identity = [](const CsvOptions& options) {
    Digest digest;
    csv("a,b\n1,2\n", options).decoder().identify(digest);
    return digest.value();
  };
  EXPECT_EQ(identity({}), identity({.types = {{"a", Dtype::i64}}}));
  EXPECT_NE(identity({}), identity({.types = {{"a", Dtype::i32}}}));
  EXPECT_NE(identity({}), identity({.columns = {"a"}}));
  EXPECT_NE(identity({}), identity({.nulls = {{"a", 0.0}}}));
  EXPECT_NE(identity({}), identity({.missing = {}}));
  EXPECT_NE(csv_kind({}).scanning, csv_kind({.header = false}).scanning);
  EXPECT_NE(csv_kind({}).scanning, csv_kind({.delimiter = ';'}).scanning);
}

TEST(CsvTest, TextsAreViewsOfTheRecordUnlessQuotesAreDoubled) {
  const TextRecords records = csv("a,b\nx,\"y\"\"z\"\n");
  EXPECT_TRUE(records.decoder().lends());
  EXPECT_FALSE(csv("a\n1\n").decoder().lends());
  const std::string bytes = "xx,\"y\"\"z\"\n";
  const auto owner = std::make_shared<const std::string>(bytes);
  Scratch scratch;
  const ScratchBlock block(records.decoder().spec(), 1, scratch);
  ASSERT_TRUE(records.decoder().decode({*owner, owner}, block.view(), 0, scratch).ok());
  const Sample sample = read_row(block.view(), 0);
  EXPECT_EQ(sample["a"].text().data(), owner->data());
  EXPECT_EQ(sample["b"].text(), "y\"z");
}

}  // namespace
}  // namespace penstock
