#include "record/mds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/error.h"
#include "record/mds_for_tests.h"
#include "record/records_for_tests.h"

namespace penstock {
namespace {

using for_tests::little_bytes;
using for_tests::mds_array;
using for_tests::mds_entry;
using for_tests::mds_sample;
using for_tests::mds_shard;
using for_tests::MdsTestColumn;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;
using testing::ThrowsMessage;

const std::vector<MdsTestColumn> kColumns = {
    {"image", "jpeg"}, {"label", "int", 8}, {"text", "str"}, {"x", "ndarray:int16:2,2", 8}};

std::string sample(int number) {
  return mds_sample(kColumns, {std::string(static_cast<std::size_t>(number) * 3, 'i'),
                               little_bytes(static_cast<std::uint64_t>(number), 8), "hé",
                               little_bytes(0x0004'0003'0002'0001U, 8)});
}

std::string index_of(const std::vector<MdsTestColumn>& columns) {
  return Json({{"version", 2}, {"shards", Json::array({mds_entry(columns, "a.mds", 1, 1)})}})
      .dump();
}

RecordKind kind_of(const std::vector<MdsTestColumn>& columns, const MdsOptions& options = {}) {
  return mds_kind(parse_mds_index(index_of(columns), "index.json"), options);
}

Scanned scan(const std::string& shard, std::size_t piece_bytes = 1'000'000) {
  return scan_all(*make_mds_scanner(), shard, piece_bytes);
}

/// One sample of one column.
TextRecords one_value(const std::string& encoding, const std::string& value, int bytes = -1,
                      const MdsOptions& options = {}) {
  const std::vector<MdsTestColumn> columns = {{"x", encoding, bytes}};
  return {kind_of(columns, options), mds_shard(columns, {mds_sample(columns, {value})})};
}

TEST(MdsTest, SamplesAreReadByTheirColumns) {
  const TextRecords records(kind_of(kColumns), mds_shard(kColumns, {sample(1), sample(2)}));
  EXPECT_EQ(records.spec(), "{image: bytes[], label: i64[], text: string[], x: i16[2, 2]}");
  ASSERT_EQ(records.size(), 2U);
  EXPECT_THAT(records.texts("image"), testing::ElementsAre("iii", "iiiiii"));
  EXPECT_THAT(records.column<std::int64_t>("label"), testing::ElementsAre(1, 2));
  EXPECT_EQ(records[1]["text"].text(), "hé");
  EXPECT_THAT(records[1]["x"].values<std::int16_t>(), testing::ElementsAre(1, 2, 3, 4));
}

TEST(MdsTest, OtherColumnsNeedNoKnownEncoding) {
  const std::vector<MdsTestColumn> columns = {{"a", "pkl"}, {"b", "secret", 3}, {"c", "str"}};
  const std::string shard = mds_shard(columns, {mds_sample(columns, {"pickled", "xyz", "text"})});
  MdsOptions options;
  options.columns = {"c"};
  const TextRecords records(kind_of(columns, options), shard);
  EXPECT_EQ(records.spec(), "{c: string[]}");
  EXPECT_EQ(records[0]["c"].text(), "text");
  EXPECT_THAT(
      [&] { kind_of(columns); },
      ThrowsMessage<ConfigError>(HasSubstr("the encoding \"pkl\" of column \"a\" is not known")));
  options.columns = {"d"};
  EXPECT_THAT([&] { kind_of(columns, options); },
              ThrowsMessage<ConfigError>(HasSubstr("no column \"d\"; there are a, b, c")));
}

TEST(MdsTest, EveryNumberHasItsDtype) {
  EXPECT_EQ(one_value("uint8", "\xff", 1)[0]["x"].item<std::uint8_t>(), 255);
  EXPECT_EQ(one_value("int16", "\xfe\xff", 2)[0]["x"].item<std::int16_t>(), -2);
  EXPECT_EQ(one_value("uint32", little_bytes(4'000'000'000U, 4), 4)[0]["x"].item<std::uint32_t>(),
            4'000'000'000U);
  EXPECT_EQ(one_value("float64", little_bytes(0x4004'0000'0000'0000U, 8), 8)[0]["x"].item<double>(),
            2.5);
  EXPECT_EQ(one_value("float16", little_bytes(0x4000, 2), 2).spec(), "{x: f16[]}");
  for (const char* text : {"str", "json", "str_int", "str_float", "str_decimal"})
    EXPECT_EQ(one_value(text, "12.5").spec(), "{x: string[]}") << text;
  for (const char* bytes : {"bytes", "jpeg", "png"})
    EXPECT_EQ(one_value(bytes, "\xff").spec(), "{x: bytes[]}") << bytes;
}

TEST(MdsTest, EncodingsThatDisagreeWithTheirSizeAreNotKnown) {
  const auto refused = [](const std::string& encoding, int bytes) {
    EXPECT_THAT([&] { kind_of({{"x", encoding, bytes}}); },
                ThrowsMessage<ConfigError>(HasSubstr("of column \"x\" is not known")))
        << encoding;
  };
  refused("uint32", -1);
  refused("uint32", 8);
  refused("str", 3);
  refused("ndarray", 3);
  refused("ndarray:int16:2", 3);
  for (const char* encoding :
       {"", "pil", "pkl", "ndarrays", "ndarray:", "ndarray:int", "ndarray:bool", "ndarray:int16:",
        "ndarray:int16:0", "ndarray:int16:2,", "ndarray:int16:-1", "ndarray:int16:2x",
        "ndarray:int16:99999999999", "ndarray:int16:65536,65536", "list[png]", "jpeg_array"})
    refused(encoding, -1);
}

TEST(MdsTest, ArraysHaveTheirShapeInFrontOfThem) {
  const TextRecords typed = one_value("ndarray:uint16", mds_array({1, 3}, "a_b_c_"));
  EXPECT_EQ(typed.spec(), "{x: u16[?, ?]}");
  EXPECT_EQ(typed[0]["x"].shape(), (Shape{1, 3}));
  EXPECT_EQ(typed[0]["x"].text(), "a_b_c_");
  const TextRecords untyped = one_value("ndarray", "\x41" + mds_array({2}, std::string(16, 'v')));
  EXPECT_EQ(untyped.spec(), "{x: i64[?]}");
  EXPECT_EQ(untyped[0]["x"].text(), std::string(16, 'v'));
  // Sizes of two bytes.
  const std::string wide = "\x05" + little_bytes(300, 2) + std::string(300, 'w');
  EXPECT_EQ(one_value("ndarray:uint8", wide)[0]["x"].shape(), (Shape{300}));
  const std::string widest = "\x0b" + little_bytes(2, 8) + little_bytes(1, 8) + "ww";
  EXPECT_EQ(one_value("ndarray:uint8", widest)[0]["x"].shape(), (Shape{2, 1}));
}

TEST(MdsTest, AShapeThatAllSamplesHaveMakesArraysDense) {
  MdsOptions options;
  options.shapes = {{"x", {2, 2}}};
  const std::vector<MdsTestColumn> columns = {{"x", "ndarray:uint8"}};
  const TextRecords records(kind_of(columns, options),
                            mds_shard(columns, {mds_sample(columns, {mds_array({2, 2}, "abcd")}),
                                                mds_sample(columns, {mds_array({4}, "abcd")})}));
  EXPECT_EQ(records.spec(), "{x: u8[2, 2]}");
  EXPECT_EQ(records[0]["x"].text(), "abcd");
  EXPECT_THAT(records.failure(1), HasSubstr("column \"x\" is u8[4], not u8[2, 2]"));
  options.shapes = {{"x", {kUnknown, 2}}};
  EXPECT_EQ(one_value("ndarray:uint8", mds_array({3, 2}, "abcdef"), -1, options).spec(),
            "{x: u8[?, 2]}");
  const auto refused = [](const char* encoding, const MdsOptions& wrong) {
    EXPECT_THAT([&] { kind_of({{"x", encoding}}, wrong); }, testing::Throws<ConfigError>());
  };
  refused("str", options);
  for (const Shape& shape :
       {Shape{}, Shape{0}, Shape{-5}, Shape{65'536, 65'536}, Shape(33, std::int64_t{1})}) {
    options.shapes = {{"x", shape}};
    refused("ndarray:uint8", options);
  }
  options.shapes = {{"y", {1}}};
  refused("ndarray:uint8", options);
}

TEST(MdsTest, DamagedArraysFailAndAreNamed) {
  const std::vector<MdsTestColumn> columns = {{"x", "ndarray"}};
  const auto failure = [&](const std::string& value) {
    const TextRecords records(
        kind_of(columns), mds_shard(columns, {mds_sample(columns, {"\x08" + mds_array({1}, "a")}),
                                              mds_sample(columns, {value})}));
    return records.failure(1);
  };
  EXPECT_THAT(failure("\x08" + mds_array({3}, "abc")), HasSubstr("no failure"));
  EXPECT_THAT(failure(""), StartsWith("column \"x\" ends within its shape"));
  EXPECT_THAT(failure("\x08"), HasSubstr("ends within its shape"));
  EXPECT_THAT(failure("\x08\x08\x01"), HasSubstr("ends within its shape"));
  EXPECT_THAT(failure("\x07" + mds_array({1}, "a")), HasSubstr("an unknown dtype, number 7"));
  EXPECT_THAT(failure("\x08" + mds_array({}, "a")), HasSubstr("has 0 dimensions"));
  EXPECT_THAT(failure("\x08\xff" + std::string(99, '\1')), HasSubstr("has 63 dimensions"));
  EXPECT_THAT(failure("\x08" + mds_array({0}, "")), HasSubstr("has a size of 0"));
  EXPECT_THAT(failure("\x08\x07" + std::string(8, '\xff')),
              HasSubstr("has a size of 18446744073709551615"));
  EXPECT_THAT(failure("\x08" + mds_array({3}, "ab")),
              HasSubstr("has 2 bytes of values, and its shape [3] is of u8"));
  EXPECT_THAT(failure("\x08\x2a" + std::string(40, '\xff') + "x"), HasSubstr("bytes of values"));
  EXPECT_THAT(failure("\x10" + mds_array({1}, "ab")), HasSubstr("is u16[1], not u8[?]"));
  EXPECT_THAT(failure("\x08" + mds_array({1, 1}, "a")), HasSubstr("is u8[1, 1], not u8[?]"));
}

TEST(MdsTest, SamplesThatDoNotFitTheirColumnsFail) {
  const auto decoder = kind_of(kColumns).decoder({});
  const auto failure = [&](const std::string& bytes) {
    const auto owner = std::make_shared<const std::string>(bytes);
    Scratch scratch;
    const ScratchBlock block(decoder->spec(), 1, scratch);
    auto done = decoder->decode({*owner, owner}, block.view(), 0, scratch);
    return done.ok() ? "no failure" : done.failure().message;
  };
  EXPECT_EQ(failure(sample(2)), "no failure");
  EXPECT_EQ(failure(sample(2) + "x"), "the sample has 1 bytes after its columns");
  EXPECT_EQ(failure(""), "the sample ends within its sizes");
  for (std::size_t bytes = 0; bytes < sample(2).size(); ++bytes)
    EXPECT_THAT(failure(sample(2).substr(0, bytes)), HasSubstr("ends")) << bytes;
  std::string huge = sample(1);
  huge.replace(0, 4, "\xff\xff\xff\xff");
  EXPECT_EQ(failure(huge),
            "column \"image\" should have 4294967295 bytes, and the sample ends after 22");
  std::string broken = sample(0);
  broken.replace(broken.find("hé"), 3, "h\xff\xff");
  EXPECT_EQ(failure(broken), "column \"text\" is not UTF-8");
}

TEST(MdsTest, ArraysThatCannotBeInferredAreRefused) {
  EXPECT_THAT([] { one_value("ndarray", "nonsense"); },
              ThrowsMessage<ConfigError>(HasSubstr("have no known shape: column \"x\" has")));
  EXPECT_THAT([] { kind_of({{"x", "ndarray"}}).decoder({}); },
              ThrowsMessage<ConfigError>(HasSubstr("it has no samples")));
}

TEST(MdsTest, TheSizeOfThePiecesMakesNoDifference) {
  std::vector<std::string> samples;
  for (int i = 0; i < 50; ++i) samples.push_back(sample(i));
  const std::string shard = mds_shard(kColumns, samples);
  for (const std::size_t bytes : {1, 3, 4, 7, 100, 207, 208, 209, 10'000}) {
    const Scanned found = scan(shard, bytes);
    EXPECT_EQ(found.records, samples) << bytes;
    EXPECT_THAT(found.damage, IsEmpty());
  }
  EXPECT_THAT(scan(mds_shard(kColumns, {})).records, IsEmpty());
}

TEST(MdsTest, OnlyTheOffsetsOfAShardAreScanned) {
  const std::string shard = mds_shard(kColumns, {sample(1), sample(2)});
  std::vector<std::uint64_t> starts;
  EXPECT_EQ(make_mds_scanner()->scan(0, shard.substr(0, 16), starts), RecordScanner::kRest);
}

TEST(MdsTest, WrongOffsetsAreDamage) {
  const std::string shard = mds_shard(kColumns, {sample(1), sample(2)});
  for (std::size_t bytes = 1; bytes < shard.size(); ++bytes) {
    const Scanned cut = scan(shard.substr(0, bytes));
    EXPECT_THAT(cut.damage, Not(IsEmpty()));
    EXPECT_THAT(cut.records, SizeIs(1));
  }
  EXPECT_THAT(scan("").damage, HasSubstr("ends within its offsets"));
  EXPECT_THAT(scan(shard + "x").damage, HasSubstr("its samples end at byte"));
  const auto changed = [&](std::size_t at, std::uint64_t value) {
    std::string text = shard;
    text.replace(at, 4, little_bytes(value, 4));
    return scan(text, 5).damage;
  };
  EXPECT_THAT(changed(0, 0xffff'ffff), HasSubstr("ends within its offsets"));
  EXPECT_THAT(changed(4, 15), HasSubstr("the offset of sample 0 is wrong: 15, after 16"));
  EXPECT_THAT(changed(8, 16), HasSubstr("the offset of sample 1 is wrong"));
  EXPECT_THAT(changed(8, 0xffff'ffff), HasSubstr("the offset of sample 1 is wrong"));
}

TEST(MdsTest, AnIndexThatIsNoneIsRefusedWithTheReason) {
  const auto refused = [](const std::string& text) {
    try {
      parse_mds_index(text, "data/index.json");
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.message(),
                  StartsWith("from_mds: data/index.json is no index of MDS shards: "));
      return error.message();
    }
    return std::string("nothing");
  };
  EXPECT_EQ(refused(index_of(kColumns)), "nothing");
  EXPECT_THAT(refused("{"), HasSubstr("not JSON"));
  EXPECT_THAT(refused("[]"), HasSubstr("type"));
  EXPECT_THAT(refused("{\"version\": 2}"), HasSubstr("shards"));
  EXPECT_THAT(refused("{\"version\": 2, \"shards\": []}"), HasSubstr("lists no shards"));
  EXPECT_THAT(refused("{\"version\": 3, \"shards\": []}"), HasSubstr("its version is 3, not 2"));
  const auto with = [](const char* path, const Json& value) {
    Json json = Json::parse(index_of(kColumns));
    json["shards"][0][Json::json_pointer(path)] = value;
    return json.dump();
  };
  EXPECT_THAT(refused(with("/format", "csv")), HasSubstr("in the format \"csv\""));
  EXPECT_THAT(refused(with("/version", 1)), HasSubstr("its version is 1"));
  EXPECT_THAT(refused(with("/samples", -1)), HasSubstr("whole number"));
  EXPECT_THAT(refused(with("/raw_data/bytes", "many")), HasSubstr("whole number"));
  for (const char* name : {"/etc/a.mds", "../a.mds", "a/../../b.mds", ""})
    EXPECT_THAT(refused(with("/raw_data/basename", name)),
                HasSubstr("not a name below its folder"));
  EXPECT_THAT(refused(with("/column_names", {"a"})), HasSubstr("not as many"));
  EXPECT_THAT(refused(with("/column_names", {"a", "b", "a", "c"})), HasSubstr("two columns \"a\""));
  EXPECT_THAT(refused(with("/column_sizes", {1, 2, -3, 4})), HasSubstr("whole number"));
  Json two = Json::parse(index_of(kColumns));
  two["shards"].push_back(mds_entry({{"x", "int", 8}}, "b.mds", 1, 1));
  EXPECT_THAT(refused(two.dump()), HasSubstr("\"b.mds\" has other columns than the first"));
}

}  // namespace
}  // namespace penstock
