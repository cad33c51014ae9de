#include "record/jsonl.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/digest.h"
#include "penstock/error.h"
#include "penstock/report_sink.h"
#include "record/json_decode.h"
#include "record/json_fast.h"
#include "record/json_fields.h"
#include "record/records_for_tests.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

TextRecords jsonl(std::string_view text, const JsonLinesOptions& options = {}) {
  return {jsonl_kind(options), text};
}

#define EXPECT_REFUSED(what, ...) \
  EXPECT_THAT([&] { (void)(what); }, ThrowsMessage<ConfigError>(AllOf(__VA_ARGS__)))

TEST(JsonLinesTest, FieldsAreInferredFromTheFirstRecords) {
  const TextRecords records =
      jsonl(R"({"id": 1, "x": 0.5, "ok": true, "name": "ann", "big": 18446744073709551615})"
            "\n\n"
            R"( {"name": "b\u00e4\n\"", "ok": false, "x": 3, "id": -2, "big": 1, "other": null} )"
            "\r\n");
  EXPECT_EQ(records.spec(), "{big: u64[], id: i64[], name: string[], ok: bool[], x: f32[]}");
  EXPECT_THAT(records.column<std::int64_t>("id"), ElementsAre(1, -2));
  EXPECT_THAT(records.column<std::uint64_t>("big"), ElementsAre(UINT64_MAX, 1U));
  EXPECT_THAT(records.column<float>("x"), ElementsAre(0.5F, 3.0F));
  EXPECT_THAT(records.column<bool>("ok"), ElementsAre(true, false));
  EXPECT_THAT(records.texts("name"), ElementsAre("ann", "b\xC3\xA4\n\""));
  EXPECT_EQ(jsonl(R"({"x": 1.5})", {.floats = Dtype::f64}).spec(), "{x: f64[]}");
}

TEST(JsonLinesTest, NumbersThatAreTooLargeForIntegersAreFloats) {
  const TextRecords records =
      jsonl(R"({"a": 123456789012345678901234567890, "b": 18446744073709551615, "c": 1})"
            "\n"
            R"({"a": 1, "b": -1, "c": 1e3})");
  EXPECT_EQ(records.spec(), "{a: f32[], b: f32[], c: f32[]}");
  EXPECT_THAT(records.column<float>("a"), ElementsAre(1.2345679e29F, 1.0F));
}

TEST(JsonLinesTest, ListsOfNumbersHaveAnyLengthAndTheirItemsOneShape) {
  const TextRecords records =
      jsonl(R"({"a": [1, 2, 3], "b": [[0.5, 1], [2, 3]], "c": [true], "d": [[[1], [2]]]})"
            "\n"
            R"({"a": [], "b": [], "c": [], "d": []})");
  EXPECT_EQ(records.spec(), "{a: i64[?], b: f32[?, 2], c: bool[?], d: i64[?, 2, 1]}");
  const Sample first = records[0];
  EXPECT_THAT(first["a"].values<std::int64_t>(), ElementsAre(1, 2, 3));
  EXPECT_EQ(first["b"].shape(), (Shape{2, 2}));
  EXPECT_THAT(first["b"].values<float>(), ElementsAre(0.5F, 1.0F, 2.0F, 3.0F));
  EXPECT_EQ(first["d"].shape(), (Shape{1, 2, 1}));
  EXPECT_EQ(records[1]["b"].shape(), (Shape{0, 2}));
}

TEST(JsonLinesTest, ObjectsAreNestedFields) {
  const TextRecords records = jsonl(R"({"z": 1, "meta": {"id": 7, "at": {"x": 1.5}}})"
                                    "\n"
                                    R"({"meta": {"at": {"x": 2.5, "more": []}, "id": 8}, "z": 2})");
  EXPECT_EQ(records.spec(), "{meta: {at: {x: f32[]}, id: i64[]}, z: i64[]}");
  EXPECT_THAT(records.column<float>("meta/at/x"), ElementsAre(1.5F, 2.5F));
  EXPECT_THAT(records.column<std::int64_t>("meta/id"), ElementsAre(7, 8));
}

TEST(JsonLinesTest, WhatHasNoTypeIsLeftOutAndReported) {
  std::string reported;
  const auto before = set_report_sink([&](std::string_view text) { reported += text; });
  const TextRecords records = jsonl(
      R"({"id": 1, "tags": ["a"], "boxes": [{"x": 1}], "none": null, "empty": [], "mixed": 1,)"
      R"( "uneven": [[1], [1, 2]], "a/b": 1, "": 2, "in": {}, "o": {"t": ["x"]}})"
      "\n"
      R"({"id": 2, "mixed": "x"})");
  set_report_sink(before);
  EXPECT_EQ(records.spec(), "{id: i64[]}");
  EXPECT_THAT(records.column<std::int64_t>("id"), ElementsAre(1, 2));
  for (const char* const part :
       {"first.txt", "\"tags\" (lists of other things than numbers)", "\"boxes\" (lists",
        "\"none\" (only null)", "\"empty\" (empty lists)", "\"mixed\" (values of several types)",
        "\"uneven\" (lists of lists of different sizes)", "\"a/b\" (its name",
        "\"in\" (empty objects)", "JSON text"})
    EXPECT_THAT(reported, HasSubstr(part));
}

TEST(JsonLinesTest, GivenFieldsReplaceInference) {
  const TextRecords records =
      jsonl(R"({"id": 7, "tags": ["a", "b"], "box": [1, 2], "meta": {"n": 1, "x": {"y": [ 1 ]}},)"
            R"( "s": "t", "extra": {}})",
            {.fields = {{"id", Dtype::u8, {}},
                        {"tags", Dtype::string, {}},
                        {"box", Dtype::f16, {2}},
                        {"meta/n", Dtype::string, {}},
                        {"meta/x", Dtype::bytes, {}},
                        {"s", Dtype::bytes, {}}}});
  EXPECT_EQ(records.spec(),
            "{box: f16[2], id: u8[], meta: {n: string[], x: bytes[]}, s: bytes[], tags: string[]}");
  const Sample sample = records[0];
  EXPECT_EQ(sample["tags"].text(), R"(["a", "b"])");
  EXPECT_EQ(sample["meta/n"].text(), "1");
  EXPECT_EQ(sample["meta/x"].text(), R"({"y": [ 1 ]})");
  EXPECT_EQ(sample["s"].text(), "t");
  EXPECT_EQ(static_cast<float>(sample["box"].values<Half>()[1]), 2.0F);
  EXPECT_REFUSED(jsonl("{}", {.fields = {{"a", Dtype::i64, {2, kUnknown}}}}), HasSubstr("\"a\""));
  EXPECT_REFUSED(jsonl("{}", {.fields = {{"a", Dtype::string, {kUnknown}}}}),
                 HasSubstr("JSON text"));
  EXPECT_REFUSED(jsonl("{}", {.fields = {{"a", Dtype::i64, {}}, {"a", Dtype::i64, {}}}}),
                 HasSubstr("two fields are called \"a\""));
  EXPECT_REFUSED(jsonl("{}", {.fields = {{"a", Dtype::i64, {}}, {"a/b", Dtype::i64, {}}}}),
                 HasSubstr("two fields"));
  EXPECT_REFUSED(jsonl("{}", {.fields = {{"a//b", Dtype::i64, {}}}}), HasSubstr("\"a//b\""));
}

TEST(JsonLinesTest, NullsAndMissingKeysFailOrBecomeWhatNullsSay) {
  constexpr std::string_view kText = R"({"a": 1, "b": "x", "c": [1, 2], "d": {"e": 1, "f": 0.5}})"
                                     "\n"
                                     R"({"a": null, "b": null, "c": [1, null], "d": null})"
                                     "\n"
                                     R"({"c": null})";
  const TextRecords strict = jsonl(kText);
  EXPECT_EQ(strict.spec(), "{a: i64[], b: string[], c: i64[?], d: {e: i64[], f: f32[]}}");
  EXPECT_THAT(strict.failure(1),
              AllOf(HasSubstr("\"a\": the value is null"), HasSubstr("nulls={")));
  EXPECT_THAT(strict.failure(2), HasSubstr("\"a\": the record does not have it"));
  JsonLinesOptions options{
      .nulls = {{"a", -1.0}, {"b", std::string("?")}, {"c", 7.0}, {"d/e", 3.0}}};
  EXPECT_THAT(jsonl(kText, options).failure(1), HasSubstr("\"d/f\""));
  options.nulls["d/f"] = std::nan("");
  const TextRecords filled = jsonl(kText, options);
  EXPECT_THAT(filled.column<std::int64_t>("a"), ElementsAre(1, -1, -1));
  EXPECT_THAT(filled.texts("b"), ElementsAre("x", "?", "?"));
  EXPECT_THAT(filled[1]["c"].values<std::int64_t>(), ElementsAre(1, 7));
  EXPECT_THAT(filled[2]["c"].values<std::int64_t>(), IsEmpty());
  EXPECT_EQ(filled[1]["d/e"].item<std::int64_t>(), 3);
  EXPECT_TRUE(std::isnan(filled[2]["d/f"].item<float>()));
  options.nulls = {{"c", {}}};
  EXPECT_THAT(jsonl(R"({"c": [1]})"
                    "\n"
                    R"({"c": [null]})",
                    options)
                  .failure(1),
              HasSubstr("null in a list"));
  EXPECT_REFUSED(jsonl(kText, {.nulls = {{"d", 1.0}}}), HasSubstr("nulls names the field \"d\""));
  EXPECT_REFUSED(jsonl(kText, {.nulls = {{"z", 1.0}}}), HasSubstr("\"z\""));
  EXPECT_EQ(jsonl(R"({"a": 1})", {.nulls = {{"a", 0.5}}}).spec(), "{a: f32[]}");
}

TEST(JsonLinesTest, FixedListsAreFilledWhole) {
  const TextRecords records = jsonl(R"({"a": null})"
                                    "\n"
                                    R"({"a": [[1, 2, 3], [4, null, 6]]})"
                                    "\n"
                                    R"({"a": [[1, 2, 3]]})",
                                    {.fields = {{"a", Dtype::i32, {2, 3}}}, .nulls = {{"a", 9.0}}});
  EXPECT_THAT(records[0]["a"].values<std::int32_t>(), ElementsAre(9, 9, 9, 9, 9, 9));
  EXPECT_THAT(records[1]["a"].values<std::int32_t>(), ElementsAre(1, 2, 3, 4, 9, 6));
  EXPECT_THAT(records.failure(2), HasSubstr("a list has 1 items"));
}

TEST(JsonLinesTest, ValuesOfAnotherTypeFailWithTheirField) {
  const TextRecords records =
      jsonl(R"({"n": 1, "x": 0.5, "l": [1], "ll": [[1, 2]], "o": {"k": 1}, "b": true})"
            "\n"
            R"({"n": 1.0, "x": 1, "l": [], "ll": [], "o": {"k": 1}, "b": true})"
            "\n"
            R"({"n": 1, "x": 1e39, "l": [], "ll": [], "o": {"k": 1}, "b": true})"
            "\n"
            R"({"n": 1, "x": 1, "l": [true], "ll": [], "o": {"k": 1}, "b": true})"
            "\n"
            R"({"n": 1, "x": 1, "l": [], "ll": [[1, 2], [1]], "o": {"k": 1}, "b": true})"
            "\n"
            R"({"n": 1, "x": 1, "l": [], "ll": [], "o": {"k": "text"}, "b": true})"
            "\n"
            R"({"n": 1, "x": 1, "l": [], "ll": [], "o": [], "b": true})"
            "\n"
            R"({"n": 1, "x": 1, "l": [], "ll": [], "o": {"k": 1}, "b": 1})"
            "\n"
            R"({"n": 99999999999999999999, "x": 1, "l": [], "ll": [], "o": {"k": 1}, "b": true})"
            "\n"
            R"({"n": 1, "x": 1, "l": 5, "ll": [], "o": {"k": 1}, "b": true})",
            {.infer_records = 1});
  EXPECT_THAT(records.failure(1), HasSubstr("\"n\" (i64[]): 1.0 is no whole number"));
  EXPECT_THAT(records.failure(2), HasSubstr("\"x\" (f32[]): 1e+39 is out of its range"));
  EXPECT_THAT(records.failure(3), HasSubstr("\"l\" (i64[?]): the value is a boolean"));
  EXPECT_THAT(records.failure(4), HasSubstr("\"ll\" (i64[?, 2]): a list has 1 items"));
  EXPECT_THAT(records.failure(5), HasSubstr("\"o/k\" (i64[]): the value is text"));
  EXPECT_THAT(records.failure(6), HasSubstr("\"o\" (an object): the value is a list"));
  EXPECT_THAT(records.failure(7), HasSubstr("\"b\" (bool[]): the value is a number"));
  EXPECT_THAT(records.failure(8), HasSubstr("\"n\" (i64[]): 1e+20 is no whole number"));
  EXPECT_THAT(records.failure(9), HasSubstr("\"l\" (i64[?]): the value is a number"));
}

TEST(JsonLinesTest, WhatIsNoObjectFailsWithThePosition) {
  const std::string deep = R"({"a": 1, "z": )" + std::string(64, '[') + std::string(64, ']') + "}";
  const TextRecords records = jsonl(
      "{\"a\": 1}\n"
      "[1]\n"
      "{\"a\": 1\n"
      "{\"a\": tru}\n"
      "{\"a\": 1} x\n"
      "{\"a\": 1, \"b\": \"\xFF\"}\n" +
          deep +
          "\n"
          "{\"a\": 1, \"a\": 2}\n"
          "{\"a\": 1e999}\n"
          "\"text\"\n"
          "{\"a\": 1, \"b\": \"\\ud800\"}\n"
          "{\"a\": 1, \"b\": 1, \"b\": 2}\n"
          "{\"a\": 01}",
      {.infer_records = 1});
  EXPECT_THAT(records.failure(1), AllOf(HasSubstr("a list rather than an object"),
                                        HasSubstr("one list is not a JSON lines file")));
  EXPECT_THAT(records.failure(2), HasSubstr("ends within its JSON"));
  EXPECT_THAT(records.failure(3), HasSubstr("not JSON at its byte 9"));
  EXPECT_THAT(records.failure(4), HasSubstr("not JSON at its byte 9: \"x\\x0a\""));
  EXPECT_THAT(records.failure(5), HasSubstr("not UTF-8 from its byte 15 on"));
  EXPECT_THAT(records.failure(6), HasSubstr("nests deeper than 64"));
  EXPECT_THAT(records.failure(7), HasSubstr("the key \"a\" comes twice"));
  EXPECT_THAT(records.failure(8), HasSubstr("too large"));
  EXPECT_THAT(records.failure(9), HasSubstr("text rather than an object"));
  EXPECT_THAT(records.failure(10), HasSubstr("not JSON at its byte"));
  EXPECT_EQ(records[11]["a"].item<std::int64_t>(), 1);  // "b" is not read
  EXPECT_THAT(records.failure(12), HasSubstr("not JSON at its byte 7"));
}

TEST(JsonLinesTest, TheLimitOfNestingIsTheSameForBothParsers) {
  for (const int depth : {1, 32, 62, 63, 64, 65}) {
    const auto size = static_cast<std::size_t>(depth);
    const TextRecords records =
        jsonl(R"({"a": 1, "z": )" + std::string(size, '[') + std::string(size, ']') + "}",
              {.fields = {{"a", Dtype::i64, {}}}});
    EXPECT_EQ(records.decode(0).ok(), depth <= 63) << depth;
  }
}

TEST(JsonLinesTest, RepeatedKeysWithinFieldsAreFound) {
  const TextRecords records = jsonl(
      "{\"o\": {\"k\": 1}}\n"
      "{\"o\": {\"k\": 1, \"k\": 1}}\n"
      "{\"o\": {\"k\": 1}, \"o\": {\"k\": 1}}\n"
      "{\"x\": {\"o\": {\"k\": 1, \"k\": 1}}, \"y\": [{\"k\": 1, \"k\": 1}], \"o\": {\"k\": 5}}\n",
      {.infer_records = 1});
  EXPECT_THAT(records.failure(1), HasSubstr("the key \"o/k\" comes twice"));
  EXPECT_THAT(records.failure(2), HasSubstr("the key \"o\" comes twice"));
  EXPECT_EQ(records[3]["o/k"].item<std::int64_t>(), 5);
}

TEST(JsonLinesTest, RecordsThatCannotBeReadDoNotStopInference) {
  EXPECT_EQ(jsonl("[]\n{\"a\": 1}\n{\"a\"\n").spec(), "{a: i64[]}");
  EXPECT_REFUSED(jsonl("[\n1,\n2]\n"), HasSubstr("first.txt"), HasSubstr("ends within its JSON"));
  EXPECT_REFUSED(jsonl(""), HasSubstr("no records"));
  EXPECT_REFUSED(jsonl("{}\n"), HasSubstr("no fields"));
  EXPECT_REFUSED(jsonl("{\"a\": []}\n"), HasSubstr("\"a\" (empty lists)"));
}

TEST(JsonLinesTest, RawLinesAreNotParsed) {
  const TextRecords records = jsonl("\n {\"a\": 1} \r\n\n not JSON\n", {.raw = true});
  EXPECT_EQ(records.spec(), "string[]");
  EXPECT_THAT(records.texts(""), ElementsAre("{\"a\": 1}", "not JSON"));
  EXPECT_THAT(jsonl("\xFF", {.raw = true}).failure(0), HasSubstr("UTF-8"));
  EXPECT_TRUE(records.decoder().lends());
}

TEST(JsonLinesTest, OptionsThatContradictEachOtherAreRefused) {
  EXPECT_REFUSED(jsonl_kind({.floats = Dtype::f16}), HasSubstr("floats"));
  EXPECT_REFUSED(jsonl_kind({.infer_records = 0}), HasSubstr("infer_records"));
  EXPECT_REFUSED(jsonl_kind({.nulls = {{"a", 1.0}}, .raw = true}), HasSubstr("raw"));
}

TEST(JsonLinesTest, WhatValuesDependOnIsIdentified) {
  const auto identity = [](const JsonLinesOptions& options) {
    Digest digest;
    jsonl(R"({"a": 1, "b": {"c": 2.5}})", options).decoder().identify(digest);
    return digest.value();
  };
  EXPECT_EQ(identity({}), identity({.fields = {{"a", Dtype::i64, {}}, {"b/c", Dtype::f32, {}}}}));
  EXPECT_NE(identity({}), identity({.fields = {{"a", Dtype::i32, {}}, {"b/c", Dtype::f32, {}}}}));
  EXPECT_NE(identity({}), identity({.fields = {{"a", Dtype::i64, {}}}}));
  EXPECT_NE(identity({}), identity({.nulls = {{"a", 1.0}}}));
  EXPECT_NE(identity({}), identity({.raw = true}));
}

/// The fields of `record` by one parser, or nothing.
std::optional<Sample> decoded(const JsonFields& fields, const std::string& record, bool fast) {
  Scratch scratch;
  const ScratchBlock block(fields.spec, 1, scratch);
  const bool done = fast ? decode_json_fast(fields, record, block.view(), 0, scratch)
                         : decode_json(fields, record, block.view(), 0, scratch).ok();
  if (!done) return std::nullopt;
  const Sample sample = read_row(block.view(), 0);
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : sample.leaves()) leaves.push_back(leaf.kept());
  return Sample::assemble(sample.structure(), std::move(leaves));
}

TEST(JsonLinesTest, BothParsersReadTheSame) {
  const JsonLinesOptions options{.nulls = {{"n", 5.0}, {"list", 1.0}}};
  const std::string first =
      R"({"n": 1, "x": 0.1, "text": "a", "list": [1.5], "o": {"k": true}, "rows": [[1, 2]]})";
  const JsonFields fields = json_fields(options, {"f", "", {first}, true});
  const auto record = [](const char* n, const char* x, const char* text, const char* list) {
    return fmt::format(R"({{"x":{}, "q": {{"n": [{{}}]}}, "n" : {},"\u0074ext": {}, "o": {{"z": 0,)"
                       R"( "k":false}}, "list":{}, "rows": [[3,4],[5,6]]}})",
                       x, n, text, list);
  };
  std::vector<std::string> records{first};
  for (const char* const n : {"0", "-0", "9223372036854775807", "-9223372036854775808", "null"})
    records.push_back(record(n, "-0.0", R"("\ud83d\ude00")", "[]"));
  for (const char* const x : {"0", "-0", "1e-400", "5e-324", "1E38", "123456789012345678901234",
                              "18446744073709551615", "0.1000000000000000055511151231257827"})
    records.push_back(record("1", x, R"("")", "null"));
  for (const char* const text : {R"("\u0000")", R"({"a": "\"}"})", "17", "[ \"]\" ]", "true"})
    records.push_back(record("1", "1", text, "[0.25, null, 7]"));
  for (const std::string& each : records) {
    const auto plain = decoded(fields, each, false);
    ASSERT_TRUE(plain.has_value()) << each;
    const auto fast = decoded(fields, each, true);
    if (!fast) continue;  // what it does not accept is for the plain parser
    for (std::size_t i = 0; i < fields.spec.fields.size(); ++i) {
      const Tensor& one = plain->leaves()[i];
      const Tensor& other = fast->leaves()[i];
      EXPECT_EQ(one.text(), other.text()) << each << ": " << fields.spec.fields[i].path;
      EXPECT_EQ(one.shape(), other.shape());
    }
  }
#ifdef PENSTOCK_SIMDJSON
  EXPECT_TRUE(decoded(fields, first, true).has_value());
#endif
}

TEST(JsonTextTest, TheTextOfAValueIsFoundInTheRecord) {
  constexpr std::string_view kRecord =
      R"( { "a" : [1, "]"] , "\u0062": {"c" : "x\"}" ,"d":-1.5e3}, "e":null})";
  EXPECT_EQ(json_text_at(kRecord, "a"), R"([1, "]"])");
  EXPECT_EQ(json_text_at(kRecord, "b"), R"({"c" : "x\"}" ,"d":-1.5e3})");
  EXPECT_EQ(json_text_at(kRecord, "b/c"), R"("x\"}")");
  EXPECT_EQ(json_text_at(kRecord, "b/d"), "-1.5e3");
  EXPECT_EQ(json_text_at(kRecord, "e"), "null");
  EXPECT_EQ(json_text_at(kRecord, "f"), "");
  for (const char* const other : {"", "{", "{\"a", "{\"a\"", "{\"a\":", "[]", "{\"a\\"})
    EXPECT_EQ(json_text_at(other, "b"), "") << other;
}

}  // namespace
}  // namespace penstock
