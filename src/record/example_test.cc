#include "record/example.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/error.h"
#include "record/example_messages_for_tests.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using messages::entry;
using messages::example;
using messages::field;
using messages::floats;
using messages::four;
using messages::framed;
using messages::ints;
using messages::sequence_example;
using messages::steps;
using messages::texts;
using messages::unpacked_floats;
using messages::unpacked_ints;
using messages::varint;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

/// Decodes one record; `payload` is framed first.
Result<Sample> decode(const RecordDecoder& decoder, const std::string& payload) {
  Scratch scratch;
  const Scratch::Frame frame(scratch);
  const ScratchBlock block(decoder.spec(), 1, scratch);
  const auto owner = std::make_shared<const std::string>(framed(payload));
  auto done = decoder.decode({*owner, owner}, block.view(), 0, scratch);
  if (!done) return std::move(done.failure());
  Sample row = read_row(block.view(), 0);
  std::vector<Tensor> leaves;
  for (const Tensor& leaf : row.leaves()) leaves.push_back(leaf.kept());
  return Sample::assemble(row.structure(), std::move(leaves));
}

Result<Sample> decode(std::vector<ExampleFeature> features, const std::string& payload) {
  return decode(*make_example_decoder(std::move(features)), payload);
}

/// The only field of a record with the feature "x".
Result<Tensor> decode_x(ExampleFeature feature, const std::string& value) {
  feature.name = "x";
  auto sample = decode({std::move(feature)}, example({entry("x", value)}));
  if (!sample) return std::move(sample.failure());
  return Tensor((*sample)["x"]);
}

template <typename T>
std::vector<T> values(const Result<Tensor>& tensor) {
  if (!tensor) {
    ADD_FAILURE() << tensor.failure().message;
    return {};
  }
  const auto span = (*tensor).values<T>();
  return {span.begin(), span.end()};
}

template <typename T>
std::string reason(const Result<T>& result) {
  return result ? "none" : result.failure().message + "; " + result.failure().remedy;
}

ExampleFeature with(Dtype dtype, Shape shape = {}) {
  return {.name = "x", .dtype = dtype, .shape = std::move(shape)};
}

TEST(ExampleTest, FieldsAreThoseOfTheSpecSortedByName) {
  const auto decoder = make_example_decoder({{"label", Dtype::i64},
                                             {"image/encoded", Dtype::bytes},
                                             {"boxes", Dtype::f32, {kUnknown, 4}},
                                             {"audio", Dtype::f32, {2}, {}, true}});
  EXPECT_EQ(decoder->spec().text(),
            "{audio: f32[?, 2], boxes: f32[?, 4], image/encoded: bytes[], label: i64[]}");
}

TEST(ExampleTest, ReadsPackedAndUnpackedLists) {
  EXPECT_THAT(values<float>(decode_x(with(Dtype::f32, {3}), floats({1, -2.5F, 3}))),
              ElementsAre(1, -2.5F, 3));
  EXPECT_THAT(values<float>(decode_x(with(Dtype::f32, {3}), unpacked_floats({1, -2.5F, 3}))),
              ElementsAre(1, -2.5F, 3));
  const std::vector<std::int64_t> numbers{0,   1,  127,       128,       -1,
                                          300, -7, INT64_MAX, INT64_MIN, 1LL << 35};
  EXPECT_EQ(values<std::int64_t>(decode_x(with(Dtype::i64, {10}), ints(numbers))), numbers);
  EXPECT_EQ(values<std::int64_t>(decode_x(with(Dtype::i64, {2, 5}), unpacked_ints(numbers))),
            numbers);
  // Parts of both kinds, which a parser must accept.
  const std::string mixed =
      field(3, field(1, varint(5) + varint(6)) + varint(1 << 3) + varint(7) + field(1, varint(8)));
  EXPECT_THAT(values<std::int64_t>(decode_x(with(Dtype::i64, {4}), mixed)),
              ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(values<std::int64_t>(decode_x(with(Dtype::i64, {kUnknown}), mixed)),
              ElementsAre(5, 6, 7, 8));
}

TEST(ExampleTest, EveryNumericDtypeIsReadFromItsKindOfList) {
  EXPECT_THAT(values<std::uint8_t>(decode_x(with(Dtype::u8, {2}), ints({0, 255}))),
              ElementsAre(0, 255));
  EXPECT_THAT(values<std::uint16_t>(decode_x(with(Dtype::u16, {1}), ints({65'535}))),
              ElementsAre(65'535));
  EXPECT_THAT(values<std::uint32_t>(decode_x(with(Dtype::u32, {1}), ints({UINT32_MAX}))),
              ElementsAre(UINT32_MAX));
  EXPECT_THAT(values<std::uint64_t>(decode_x(with(Dtype::u64, {1}), ints({INT64_MAX}))),
              ElementsAre(std::uint64_t{INT64_MAX}));
  EXPECT_THAT(values<std::int8_t>(decode_x(with(Dtype::i8, {2}), ints({-128, 127}))),
              ElementsAre(-128, 127));
  EXPECT_THAT(values<std::int16_t>(decode_x(with(Dtype::i16, {1}), ints({-32'768}))),
              ElementsAre(-32'768));
  EXPECT_THAT(values<std::int32_t>(decode_x(with(Dtype::i32, {1}), ints({INT32_MIN}))),
              ElementsAre(INT32_MIN));
  EXPECT_THAT(values<bool>(decode_x(with(Dtype::boolean, {2}), ints({0, 1}))),
              ElementsAre(false, true));
  EXPECT_THAT(values<double>(decode_x(with(Dtype::f64, {1}), floats({0.5F}))), ElementsAre(0.5));
  EXPECT_THAT(values<Half>(decode_x(with(Dtype::f16, {1}), floats({0.5F}))),
              ElementsAre(Half(0.5F)));
  EXPECT_THAT(values<BFloat16>(decode_x(with(Dtype::bf16, {kUnknown}), floats({0.5F}))),
              ElementsAre(BFloat16(0.5F)));
}

TEST(ExampleTest, AValueThatDoesNotFitFailsAndIsNamed) {
  for (const auto& [dtype, value] :
       std::vector<std::pair<Dtype, std::int64_t>>{{Dtype::u8, 256},
                                                   {Dtype::u8, -1},
                                                   {Dtype::u16, 65'536},
                                                   {Dtype::u32, -1},
                                                   {Dtype::u64, -1},
                                                   {Dtype::i8, 128},
                                                   {Dtype::i16, -32'769},
                                                   {Dtype::i32, 1LL << 31},
                                                   {Dtype::boolean, 2}}) {
    const std::string expected = fmt::format(
        "feature \"x\" has the value {}, which does not fit {}", value, dtype_name(dtype));
    EXPECT_THAT(reason(decode_x(with(dtype, {2}), ints({1, value}))), HasSubstr(expected));
    EXPECT_THAT(reason(decode_x(with(dtype, {kUnknown}), unpacked_ints({1, value}))),
                HasSubstr(expected));
  }
}

TEST(ExampleTest, TextsAreViewsOfTheRecord) {
  const auto decoder =
      make_example_decoder({{"a", Dtype::bytes}, {"b", Dtype::string}, {"c", Dtype::u8}});
  EXPECT_TRUE(decoder->lends());
  Scratch scratch;
  const ScratchBlock block(decoder->spec(), 1, scratch);
  const auto owner = std::make_shared<const std::string>(framed(example(
      {entry("a", texts({"\xff\0x"})), entry("b", texts({"h\xc3\xa9"})), entry("c", ints({9}))})));
  ASSERT_TRUE(decoder->decode({*owner, owner}, block.view(), 0, scratch).ok());
  const Tensor text = block.view().columns[1].tensors[0];
  EXPECT_EQ(text.text(), "h\xc3\xa9");
  EXPECT_GE(text.text().data(), owner->data());
  EXPECT_LT(text.text().data(), owner->data() + owner->size());
  // Without an owner they are copies.
  ASSERT_TRUE(decoder->decode({*owner}, block.view(), 0, scratch).ok());
  const Tensor copy = block.view().columns[1].tensors[0];
  EXPECT_EQ(copy.text(), text.text());
  EXPECT_NE(copy.text().data(), text.text().data());
  EXPECT_FALSE(make_example_decoder({{"x", Dtype::i64}})->lends());
}

TEST(ExampleTest, AStringThatIsNotUtf8Fails) {
  EXPECT_THAT(reason(decode_x(with(Dtype::string), texts({"\xff"}))),
              AllOf(HasSubstr("\"x\" is not UTF-8"), HasSubstr("declare it as bytes")));
  EXPECT_EQ((*decode_x(with(Dtype::bytes), texts({"\xff"}))).text(), "\xff");
  EXPECT_EQ((*decode_x(with(Dtype::string), texts({""}))).text(), "");
}

TEST(ExampleTest, AnAbsentFeatureFailsAndTheNamesInTheRecordAreListed) {
  const std::string payload =
      example({entry("image/encoded", texts({"x"})), entry("y", ints({1}))});
  const std::string expected =
      "\"x\" is absent or empty, expected f32[2]; the record has: \"image/encoded\", \"y\"";
  EXPECT_THAT(reason(decode({with(Dtype::f32, {2})}, payload)), HasSubstr(expected));
  EXPECT_THAT(reason(decode({with(Dtype::bytes)}, payload)), HasSubstr("is absent or empty"));
  EXPECT_THAT(reason(decode({with(Dtype::i64)}, "")), HasSubstr("the record has: no features"));
  const auto failed = decode({with(Dtype::f32, {2})}, payload);
  EXPECT_EQ(failed.failure().where.field, "x");
}

TEST(ExampleTest, MissingValuesTakeThePlaceOfAbsentAndEmptyOnes) {
  ExampleFeature two = with(Dtype::f32, {2});
  two.missing = Tensor::of(std::vector<float>{7, 8});
  ExampleFeature same = with(Dtype::i32, {3});
  same.missing = Tensor::scalar(std::int32_t{-1});
  ExampleFeature text = with(Dtype::string);
  text.missing = Tensor::bytes("none", Dtype::string);
  for (const std::string& none : {std::string(), floats({})})
    EXPECT_THAT(values<float>(decode_x(two, none)), ElementsAre(7, 8));
  for (const std::string& none : {std::string(), ints({}), unpacked_ints({})})
    EXPECT_THAT(values<std::int32_t>(decode_x(same, none)), ElementsAre(-1, -1, -1));
  for (const std::string& none : {std::string(), texts({})})
    EXPECT_EQ((*decode_x(text, none)).text(), "none");
  EXPECT_THAT(values<float>(decode_x(two, floats({1, 2}))), ElementsAre(1, 2));
  EXPECT_THAT(reason(decode_x(two, floats({1}))), HasSubstr("has 1 float, expected f32[2]"));
}

TEST(ExampleTest, AnotherNumberOfValuesFails) {
  EXPECT_THAT(
      reason(decode_x(with(Dtype::f32, {2}), floats({1, 2, 3}))),
      AllOf(HasSubstr("feature \"x\" has 3 floats, expected f32[2]"), HasSubstr("unknown size")));
  EXPECT_THAT(reason(decode_x(with(Dtype::i64), unpacked_ints({1, 2}))),
              HasSubstr("has 2 integers, expected i64[]"));
  EXPECT_THAT(reason(decode_x(with(Dtype::i64, {3}), ints({1, 2}))),
              HasSubstr("has 2 integers, expected i64[3]"));
  EXPECT_THAT(reason(decode_x(with(Dtype::bytes), texts({"a", "b"}))),
              HasSubstr("has 2 texts, expected bytes[]"));
  EXPECT_THAT(reason(decode_x(with(Dtype::f32, {kUnknown, 2}), floats({1, 2, 3}))),
              HasSubstr("has 3 floats, expected f32[?, 2]"));
}

TEST(ExampleTest, AnotherKindOfListFails) {
  EXPECT_THAT(reason(decode_x(with(Dtype::f32, {2}), ints({1, 2}))),
              AllOf(HasSubstr("has 2 integers, expected f32[2]"), HasSubstr("as integers")));
  EXPECT_THAT(reason(decode_x(with(Dtype::i64), floats({1}))),
              AllOf(HasSubstr("has 1 float, expected i64[]"), HasSubstr("as floats")));
  EXPECT_THAT(reason(decode_x(with(Dtype::string), ints({1}))),
              HasSubstr("has 1 integer, expected string[]"));
  EXPECT_THAT(reason(decode_x(with(Dtype::f32, {2}), texts({"12345678"}))),
              AllOf(HasSubstr("has 1 text, expected f32[2]"), HasSubstr("raw=true")));
  EXPECT_THAT(reason(decode_x(with(Dtype::f32, {kUnknown}), ints({1}))),
              HasSubstr("has 1 integer, expected f32[?]"));
}

TEST(ExampleTest, AnUnknownSizeTakesAnyNumberOfValues) {
  const ExampleFeature boxes = with(Dtype::f32, {kUnknown, 2});
  EXPECT_EQ((*decode_x(boxes, floats({1, 2, 3, 4, 5, 6}))).shape(), (Shape{3, 2}));
  EXPECT_THAT(values<float>(decode_x(boxes, unpacked_floats({1, 2}))), ElementsAre(1, 2));
  EXPECT_EQ((*decode_x(boxes, floats({}))).shape(), (Shape{0, 2}));
  EXPECT_EQ((*decode({boxes}, example({})))["x"].shape(), (Shape{0, 2}));
  EXPECT_EQ((*decode_x(with(Dtype::i32, {3, kUnknown}), ints({1, 2, 3, 4, 5, 6}))).shape(),
            (Shape{3, 2}));
  EXPECT_EQ((*decode_x(with(Dtype::i32, {kUnknown, 0}), ints({}))).shape(), (Shape{0, 0}));
}

TEST(ExampleTest, RawNumbersAreTheBytesOfAText) {
  const auto raw = [](Dtype dtype, Shape shape) {
    ExampleFeature feature = with(dtype, std::move(shape));
    feature.raw = true;
    return feature;
  };
  const std::string two = four(1.5F) + four(-2);
  EXPECT_THAT(values<float>(decode_x(raw(Dtype::f32, {2}), texts({two}))), ElementsAre(1.5F, -2));
  EXPECT_THAT(values<float>(decode_x(raw(Dtype::f32, {kUnknown}), texts({two}))),
              ElementsAre(1.5F, -2));
  EXPECT_THAT(values<std::uint8_t>(decode_x(raw(Dtype::u8, {}), texts({"\x07"}))), ElementsAre(7));
  EXPECT_EQ((*decode_x(raw(Dtype::u16, {kUnknown, 2}), texts({two}))).shape(), (Shape{2, 2}));
  EXPECT_EQ((*decode_x(raw(Dtype::u16, {kUnknown, 2}), texts({}))).shape(), (Shape{0, 2}));
  EXPECT_THAT(reason(decode_x(raw(Dtype::f32, {3}), texts({two}))),
              HasSubstr("has 8 bytes, expected f32[3], which has 12"));
  EXPECT_THAT(reason(decode_x(raw(Dtype::f32, {kUnknown, 3}), texts({two}))),
              HasSubstr("has 8 bytes, expected f32[?, 3], which has a multiple of 12"));
  EXPECT_THAT(reason(decode_x(raw(Dtype::f32, {2}), floats({1, 2}))),
              HasSubstr("has 2 floats, expected f32[2] as bytes"));
  EXPECT_THAT(reason(decode_x(raw(Dtype::f32, {2}), texts({two, two}))), HasSubstr("has 2 texts"));
  EXPECT_THAT(reason(decode_x(raw(Dtype::boolean, {2}), texts({"\x01\x02"}))),
              HasSubstr("other than 0 and 1"));
  EXPECT_THAT(reason(decode_x(raw(Dtype::f32, {2}), texts({}))), HasSubstr("is absent or empty"));
}

TEST(ExampleTest, FeatureListsOfASequenceExampleAreSteps) {
  std::vector<ExampleFeature> features{{"id", Dtype::i64},
                                       {"frame", Dtype::f32, {2}, {}, true},
                                       {"token", Dtype::i32, {}, {}, true},
                                       {"none", Dtype::u8, {3}, {}, true}};
  const auto sample =
      decode(features,
             sequence_example(
                 {entry("id", ints({5}))},
                 {entry("frame", steps({floats({1, 2}), floats({3, 4}), unpacked_floats({5, 6})})),
                  entry("token", steps({ints({-1}), ints({7})}))}));
  ASSERT_TRUE(sample.ok()) << reason(sample);
  EXPECT_EQ((*sample)["id"].item<std::int64_t>(), 5);
  EXPECT_EQ((*sample)["frame"].shape(), (Shape{3, 2}));
  EXPECT_THAT((*sample)["frame"].values<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT((*sample)["token"].values<std::int32_t>(), ElementsAre(-1, 7));
  EXPECT_EQ((*sample)["none"].shape(), (Shape{0, 3}));
}

TEST(ExampleTest, AStepThatDiffersFails) {
  ExampleFeature feature = with(Dtype::f32, {2});
  feature.sequence = true;
  const auto of_steps = [&](const std::vector<std::string>& list) {
    return reason(decode({feature}, sequence_example({}, {entry("x", steps(list))})));
  };
  EXPECT_THAT(of_steps({floats({1, 2}), floats({3, 4, 5})}),
              HasSubstr("has 3 floats, expected f32[2] in each step"));
  EXPECT_THAT(of_steps({floats({1, 2}), floats({})}), HasSubstr("has a step without values"));
  EXPECT_THAT(of_steps({floats({1, 2, 3, 4}), ""}), HasSubstr("has 4 floats"));
  EXPECT_THAT(of_steps({ints({1, 2})}), HasSubstr("has 2 integers"));
  EXPECT_EQ(of_steps({}), "none");
  // The same name outside of the lists is another feature.
  EXPECT_EQ(reason(decode({feature}, example({entry("x", ints({1}))}))), "none");
}

TEST(ExampleTest, ManyStepsWithoutValuesRequestNoMemory) {
  ExampleFeature feature = with(Dtype::f64, {1 << 20});
  feature.sequence = true;
  const std::vector<std::string> empty(100'000);
  EXPECT_THAT(reason(decode({feature}, sequence_example({}, {entry("x", steps(empty))}))),
              HasSubstr("has 100000 steps in 200000 bytes"));
}

TEST(ExampleTest, TheLastOfTwoEntriesOfOneNameIsTaken) {
  const std::string twice = example({entry("x", ints({1})), entry("x", ints({2}))});
  EXPECT_EQ((*decode({with(Dtype::i64)}, twice))["x"].item<std::int64_t>(), 2);
  const std::string parts = example({entry("x", ints({1}))}) + example({entry("x", ints({3}))});
  EXPECT_EQ((*decode({with(Dtype::i64)}, parts))["x"].item<std::int64_t>(), 3);
}

TEST(ExampleTest, UnknownFieldsAreSkipped) {
  const std::string other = field(15, "other") + varint(9 << 3) + varint(1234) +
                            varint(10 << 3 | 5) + "abcd" + varint(11 << 3 | 1) + "abcdefgh";
  const std::string list = field(3, other + field(1, varint(4)) + other) + other;
  const std::string payload =
      other +
      field(1, other + field(1, other + field(2, list) + other + field(1, "x") + other) + other) +
      other;
  EXPECT_EQ((*decode({with(Dtype::i64)}, payload))["x"].item<std::int64_t>(), 4);
}

TEST(ExampleTest, EveryCutOfARecordFailsOrIsAnExample) {
  const std::string payload = example(
      {entry("x", ints({1, 300, -1})), entry("y", floats({1, 2})), entry("z", texts({"text"}))});
  const auto decoder = make_example_decoder(
      {with(Dtype::i64, {3}), {"y", Dtype::f32, {kUnknown}}, {"z", Dtype::string}});
  ASSERT_TRUE(decode(*decoder, payload).ok());
  for (std::size_t bytes = 0; bytes < payload.size(); ++bytes)
    EXPECT_FALSE(decode(*decoder, payload.substr(0, bytes)).ok()) << bytes;
}

TEST(ExampleTest, MalformedMessagesFail) {
  const auto why = [](const std::string& payload) {
    return reason(decode({with(Dtype::i64)}, payload));
  };
  const std::string eleven(11, '\x80');
  EXPECT_THAT(why("no example at all"), HasSubstr("no tf.train.Example"));
  EXPECT_THAT(why(varint(1 << 3) + varint(1)), HasSubstr("no tf.train.Example"));
  EXPECT_THAT(why(field(1, varint(1 << 3) + varint(1))), HasSubstr("no tf.train.Example"));
  EXPECT_THAT(why(varint(7 << 3 | 3) + varint(7 << 3 | 4)), HasSubstr("no tf.train.Example"));
  EXPECT_THAT(why(std::string(1, '\0')), HasSubstr("no tf.train.Example"));
  EXPECT_THAT(why(example({field(1, field(1, "x") + field(2, ints({1})) + field(2, ints({2})))})),
              HasSubstr("no tf.train.Example"));
  EXPECT_THAT(why(eleven), HasSubstr("no tf.train.Example"));
  for (const std::string& value :
       {field(3, field(1, "\x80")), field(3, field(1, eleven)),
        field(3, varint(1 << 3 | 5) + "abcd"), field(3, field(1, std::string(9, '\xff') + '\x02')),
        ints({1}) + ints({1}), ints({1}) + floats({1}), std::string("\x1a\x05\x0a")})
    EXPECT_THAT(why(example({entry("x", value)})), HasSubstr("\"x\" is malformed")) << value;
  EXPECT_THAT(reason(decode_x(with(Dtype::f32, {1}), field(2, field(1, "abcde")))),
              HasSubstr("is malformed"));
  EXPECT_THAT(reason(decode_x(with(Dtype::f32, {kUnknown}), field(2, field(1, "abcde")))),
              HasSubstr("is malformed"));
}

TEST(ExampleTest, AChecksumThatIsWrongFails) {
  const auto decoder = make_example_decoder({with(Dtype::i64)});
  std::string record = framed(example({entry("x", ints({1}))}));
  record[20] = static_cast<char>(record[20] ^ 1);
  Scratch scratch;
  const ScratchBlock block(decoder->spec(), 1, scratch);
  const auto done = decoder->decode({record}, block.view(), 0, scratch);
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.failure().message, HasSubstr("checksum"));
}

TEST(ExampleTest, ManyFeaturesAreFoundInAnyOrder) {
  std::vector<ExampleFeature> features;
  std::vector<std::string> entries;
  for (int i = 0; i < 300; ++i) {
    features.push_back({fmt::format("feature number {:03} of this record", i), Dtype::i64});
    entries.push_back(entry(features.back().name, ints({i})));
    entries.push_back(entry(fmt::format("another one, {}", i), ints({-i})));
  }
  std::ranges::reverse(entries);
  const auto sample = decode(features, example(entries));
  ASSERT_TRUE(sample.ok()) << reason(sample);
  for (int i = 0; i < 300; ++i)
    EXPECT_EQ((*sample)[features[static_cast<std::size_t>(i)].name].item<std::int64_t>(), i);
}

TEST(ExampleTest, FeaturesThatCannotBeReadAreRefused) {
  const auto refused = [](ExampleFeature feature) {
    if (feature.name.empty()) feature.name = "x";
    try {
      (void)make_example_decoder({std::move(feature)});
    } catch (const ConfigError& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refused({.dtype = Dtype::bytes, .shape = {2}}), HasSubstr("is bytes[2]"));
  EXPECT_THAT(refused({.dtype = Dtype::string, .sequence = true}), HasSubstr("by steps"));
  EXPECT_THAT(refused({.dtype = Dtype::bytes, .raw = true}), HasSubstr("is bytes[]"));
  EXPECT_THAT(refused({.shape = {kUnknown, kUnknown}}), HasSubstr("[?, ?]"));
  EXPECT_THAT(refused({.shape = {-5}}), HasSubstr("[-5]"));
  EXPECT_THAT(refused({.shape = {1LL << 40, 1LL << 40}}), HasSubstr("too many values"));
  EXPECT_THAT(refused({.shape = {1LL << 62}}), HasSubstr("f32[4611686018427387904]"));
  EXPECT_THAT(refused({.shape = {kUnknown}, .sequence = true}), HasSubstr("f32[?] by steps"));
  EXPECT_THAT(refused({.shape = {kUnknown}, .missing = Tensor::scalar(1.0F)}),
              HasSubstr("value for missing ones"));
  EXPECT_THAT(refused({.shape = {2}, .missing = Tensor::of(std::vector<float>(3))}),
              HasSubstr("is f32[2], its value for missing ones is f32[3]"));
  EXPECT_THAT(refused({.missing = Tensor::scalar(1)}), HasSubstr("missing ones is i32[]"));
  EXPECT_THAT(refused({.name = "\xff"}), HasSubstr("no name in UTF-8"));
  EXPECT_THROW((void)make_example_decoder({}), ConfigError);
  EXPECT_THROW((void)make_example_decoder({{"x"}, {"x", Dtype::i64}}), ConfigError);
}

TEST(ExampleTest, TheDigestTellsSpecsApart) {
  const auto digest = [](const ExampleFeature& feature) {
    Digest out;
    make_example_decoder({feature})->identify(out);
    return out.value();
  };
  const ExampleFeature plain = with(Dtype::f32, {2});
  std::vector<ExampleFeature> others(6, plain);
  others[0].name = "y";
  others[1].dtype = Dtype::f16;
  others[2].shape = {1, 2};
  others[3].missing = Tensor::scalar(0.0F);
  others[4].sequence = true;
  others[5].raw = true;
  EXPECT_EQ(digest(plain), digest(with(Dtype::f32, {2})));
  for (const ExampleFeature& other : others) EXPECT_NE(digest(plain), digest(other));
}

TEST(PayloadDecoderTest, ThePayloadIsOneField) {
  const auto decoder = make_payload_decoder();
  EXPECT_EQ(decoder->spec(), ElementSpec::single(Dtype::bytes));
  EXPECT_EQ((*decode(*decoder, "any bytes")).tensor().text(), "any bytes");
  EXPECT_EQ((*decode(*decoder, "")).tensor().text(), "");
}

}  // namespace
}  // namespace penstock
