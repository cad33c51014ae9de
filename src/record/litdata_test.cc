#include "record/litdata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/error.h"
#include "record/decompressor.h"
#include "record/litdata_for_tests.h"
#include "record/litdata_value.h"
#include "record/records_for_tests.h"

namespace penstock {
namespace {

using for_tests::litdata_array;
using for_tests::litdata_chunk;
using for_tests::litdata_dict;
using for_tests::litdata_entry;
using for_tests::litdata_index;
using for_tests::litdata_item;
using for_tests::litdata_leaf;
using for_tests::litdata_tensor;
using for_tests::litdata_tuple;
using for_tests::little_bytes;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;
using testing::ThrowsMessage;

LitDataIndex parse(const Json& index) {
  return parse_litdata_index(index.dump(), "index.json");
}

Json index_of(const Json& spec, const std::vector<std::string>& serializers) {
  return litdata_index(spec, serializers, {litdata_entry("a.bin", 100, 2)});
}

RecordKind kind_of(const Json& spec, const std::vector<std::string>& serializers,
                   const LitDataOptions& options = {}) {
  return litdata_kind(parse(index_of(spec, serializers)), options);
}

Scanned scan(const std::string& chunk, std::size_t piece_bytes = 1'000'000) {
  return scan_all(*make_litdata_scanner(), chunk, piece_bytes);
}

/// One item of one value.
TextRecords one_value(const std::string& serializer, const std::string& value,
                      const LitDataOptions& options = {}) {
  return {kind_of(litdata_leaf(), {serializer}, options), litdata_chunk({litdata_item({value})})};
}

const Json kSpec = litdata_dict({{"z", litdata_leaf()},
                                 {"a", litdata_tuple({litdata_leaf(), litdata_leaf()})},
                                 {"m", litdata_dict({{"y", litdata_leaf()}})}});
const std::vector<std::string> kSerializers = {"int", "str", "float", "jpeg"};

std::string item(int number) {
  return litdata_item({little_bytes(static_cast<std::uint64_t>(number), 8), "hé",
                       little_bytes(0x4004'0000'0000'0000U, 8),
                       std::string(static_cast<std::size_t>(number) * 3, 'i')});
}

TEST(LitDataTest, ItemsAreReadByTheirStructure) {
  const TextRecords records(kind_of(kSpec, kSerializers), litdata_chunk({item(1), item(2)}));
  EXPECT_EQ(records.spec(), "{a: (string[], f64[]), m: {y: bytes[]}, z: i64[]}");
  ASSERT_EQ(records.size(), 2U);
  EXPECT_THAT(records.texts("m/y"), ElementsAre("iii", "iiiiii"));
  EXPECT_THAT(records.column<std::int64_t>("z"), ElementsAre(1, 2));
  EXPECT_EQ(records[1]["a/0"].text(), "hé");
  EXPECT_EQ(records[1]["a/1"].item<double>(), 2.5);
}

TEST(LitDataTest, ChosenFieldsKeepTheirPlaces) {
  LitDataOptions options;
  options.fields = {"a/1", "m/y"};
  const std::vector<std::string> serializers = {"pickle", "secret", "float", "jpeg"};
  const TextRecords records(kind_of(kSpec, serializers, options), litdata_chunk({item(1)}));
  EXPECT_EQ(records.spec(), "{a: {1: f64[]}, m: {y: bytes[]}}");
  EXPECT_EQ(records[0]["a/1"].item<double>(), 2.5);
  EXPECT_THAT([&] { kind_of(kSpec, serializers); },
              ThrowsMessage<ConfigError>(
                  HasSubstr("field \"z\" was stored by \"pickle\", which is not read")));
  options.fields = {"b"};
  EXPECT_THAT(
      [&] { kind_of(kSpec, serializers, options); },
      ThrowsMessage<ConfigError>(HasSubstr(R"(no field "b"; there are "z", "a/0", "a/1", "m/y")")));
}

TEST(LitDataTest, EveryValueHasItsDtype) {
  EXPECT_EQ(one_value("int", little_bytes(~std::uint64_t{1}, 8))[0][""].item<std::int64_t>(), -2);
  EXPECT_EQ(one_value("bool", "\x01").spec(), "bool[]");
  EXPECT_EQ(one_value("bool", "\x01")[0][""].item<bool>(), true);
  for (const char* text : {"str", "text"})
    EXPECT_EQ(one_value(text, "12.5").spec(), "string[]") << text;
  for (const char* file : {"bytes", "file", "file:npz", "jpeg", "image:png", "image", "tif",
                           "tifffile", "video:mp4", "audio:wav", "pdf"})
    EXPECT_EQ(one_value(file, "\xff").spec(), "bytes[]") << file;
  EXPECT_THAT(one_value("int", "1234").failure(0), HasSubstr("the item has 4 bytes, not the 8"));
  EXPECT_THAT(one_value("bool", "\x02").failure(0), HasSubstr("other than 0 and 1"));
  EXPECT_THAT(one_value("bool", "").failure(0), HasSubstr("has 0 bytes, not the 1 of bool"));
  EXPECT_THAT(one_value("str", "\xff").failure(0), HasSubstr("the item is not UTF-8"));
}

TEST(LitDataTest, OtherSerializersAreRefused) {
  for (const char* name :
       {"", "pickle", "graph", "mesh", "nifti", "jpeg_array", "no_header_numpy",
        "no_header_numpy:", "no_header_numpy:11", "no_header_numpy:14", "no_header_numpy:x",
        "no_header_numpy:1x", "no_header_tensor:4", "no_header_tensor:21", "int:3", "numpy:3"})
    EXPECT_THAT([&] { kind_of(litdata_leaf(), {name}); },
                ThrowsMessage<ConfigError>(HasSubstr("the item was stored by \"")))
        << name;
}

TEST(LitDataTest, ArraysOfOneDimensionAreTheirValues) {
  const TextRecords numbers = one_value("no_header_numpy:1", "a_b_c_");
  EXPECT_EQ(numbers.spec(), "i16[?]");
  EXPECT_EQ(numbers[0][""].shape(), (Shape{3}));
  EXPECT_EQ(one_value("no_header_tensor:18", "").spec(), "i64[?]");
  EXPECT_EQ(one_value("no_header_tensor:18", "")[0][""].shape(), (Shape{0}));
  EXPECT_EQ(one_value("no_header_tensor:10", "ab").spec(), "bf16[?]");
  EXPECT_EQ(one_value("no_header_numpy:13", "\x01").spec(), "bool[?]");
  EXPECT_THAT(one_value("no_header_numpy:13", "\x07").failure(0), HasSubstr("expected bool"));
  EXPECT_THAT(one_value("no_header_numpy:1", "abc").failure(0), HasSubstr("has 3 bytes"));
}

TEST(LitDataTest, OtherArraysHaveDtypeAndShapeInFrontOfThem) {
  const TextRecords array = one_value("numpy", litdata_array(5, {1, 3}, "a_b_c_"));
  EXPECT_EQ(array.spec(), "u16[?, ?]");
  EXPECT_EQ(array[0][""].shape(), (Shape{1, 3}));
  EXPECT_EQ(array[0][""].text(), "a_b_c_");
  EXPECT_EQ(one_value("numpy", litdata_array(0, {0, 3}, ""))[0][""].shape(), (Shape{0, 3}));
  // The low byte of a header is first, or last since later versions.
  for (const auto& header : {litdata_tensor, litdata_array}) {
    const TextRecords tensor = one_value("tensor", header(9, {2, 1}, "a_b_"));
    EXPECT_EQ(tensor.spec(), "f16[?, ?]");
    EXPECT_EQ(tensor[0][""].shape(), (Shape{2, 1}));
  }
  EXPECT_EQ(one_value("tensor", litdata_tensor(1, {}, "1234")).spec(), "f32[]");
  EXPECT_EQ(one_value("tensor", litdata_tensor(1, {}, "1234"))[0][""].text(), "1234");
}

TEST(LitDataTest, HeadersThatLieFail) {
  LitDataOptions options;
  options.shapes = {{"", {2}}};
  const auto failure = [](const std::string& serializer, const std::string& value) {
    const LitDataType type = litdata_type(serializer);
    const Result<LitDataArray> array = read_litdata_array(value, type);
    return array.ok() ? "none" : array.failure().message;
  };
  EXPECT_THAT(failure("numpy", ""), HasSubstr("ends within its shape"));
  EXPECT_THAT(failure("numpy", litdata_array(5, {}, "").substr(0, 7)), HasSubstr("ends within"));
  EXPECT_THAT(failure("numpy", litdata_array(5, {2}, "").substr(0, 10)), HasSubstr("ends within"));
  EXPECT_THAT(failure("numpy", litdata_array(11, {1}, "abcdefgh")), HasSubstr("number 11"));
  EXPECT_THAT(failure("numpy", litdata_array(5, std::vector<unsigned>(33, 1), "ab")),
              HasSubstr("has 33 dimensions"));
  EXPECT_THAT(failure("numpy", litdata_array(5, {2, 2}, "abcdef")),
              HasSubstr("has 6 bytes of values, and its shape [2, 2] is of u16"));
  const unsigned most = 0xffff'ffff;
  for (const std::vector<unsigned>& sizes : std::vector<std::vector<unsigned>>{
           {most, most, most}, {0, most, most, most}, {most, most, 0}, {65'536, 65'536}})
    EXPECT_THAT(failure("numpy", litdata_array(4, sizes, "")), HasSubstr("bytes of values"));
  EXPECT_THAT(failure("tensor", litdata_tensor(21, {1}, "a")), HasSubstr("number 21"));
  EXPECT_THAT(failure("tensor", litdata_tensor(5, {1}, "abcdefgh")), HasSubstr("unknown dtype"));
}

TEST(LitDataTest, PicturesAreTheirPixels) {
  const auto picture = [](unsigned width, unsigned height, const std::string& mode,
                          const std::string& pixels) {
    return little_bytes(width, 4) + little_bytes(height, 4) + little_bytes(mode.size(), 4) + mode +
           pixels;
  };
  const TextRecords records = one_value("pil", picture(1, 2, "RGB", "rgbRGB"));
  EXPECT_EQ(records.spec(), "u8[?, ?, ?]");
  EXPECT_EQ(records[0][""].shape(), (Shape{2, 1, 3}));
  EXPECT_EQ(records[0][""].text(), "rgbRGB");
  EXPECT_EQ(one_value("pil", picture(1, 2, "L", "12"))[0][""].shape(), (Shape{2, 1, 1}));
  const auto refused = [](const std::string& value, const char* why) {
    EXPECT_THAT([&] { one_value("pil", value); }, ThrowsMessage<ConfigError>(HasSubstr(why)));
  };
  refused(picture(1, 1, "P", "1"), "the item is a picture of mode \"P\"");
  refused(picture(2, 2, "L", "123"), "has 3 bytes of values");
  refused(picture(2, 2, "L", "").substr(0, 12), "ends within its size and mode");
}

TEST(LitDataTest, AShapeThatAllSamplesHaveMakesArraysDense) {
  LitDataOptions options;
  options.shapes = {{"x", {2, 2}}};
  const Json spec = litdata_dict({{"x", litdata_leaf()}});
  const TextRecords records(kind_of(spec, {"numpy"}, options),
                            litdata_chunk({litdata_item({litdata_array(4, {2, 2}, "abcd")}),
                                           litdata_item({litdata_array(4, {4}, "abcd")}),
                                           litdata_item({litdata_array(0, {2, 2}, "abcd")})}));
  EXPECT_EQ(records.spec(), "{x: u8[2, 2]}");
  EXPECT_EQ(records[0]["x"].text(), "abcd");
  EXPECT_THAT(records.failure(1), HasSubstr("field \"x\" is u8[4], not u8[2, 2]"));
  EXPECT_THAT(records.failure(2), HasSubstr("field \"x\" is i8[2, 2], not u8[2, 2]"));
  const auto refused = [&spec](const char* serializer, const LitDataOptions& wrong) {
    EXPECT_THAT([&] { kind_of(spec, {serializer}, wrong); }, testing::Throws<ConfigError>());
  };
  refused("str", options);
  for (const Shape& shape :
       {Shape{}, Shape{0}, Shape{-5}, Shape{65'536, 65'536}, Shape(33, std::int64_t{1})}) {
    options.shapes = {{"x", shape}};
    refused("numpy", options);
  }
  options.shapes = {{"y", {1}}};
  refused("numpy", options);
}

TEST(LitDataTest, NestedValuesAreJson) {
  const auto text = [](const std::string& value) {
    return litdata_json_text(value).ok() ? *litdata_json_text(value)
                                         : litdata_json_text(value).failure().message;
  };
  const auto counted = [](const std::string& value) {
    return little_bytes(value.size(), 4) + value;
  };
  const auto tag = [](int number) { return std::string(1, static_cast<char>(number)); };
  const std::string two = little_bytes(2, 4);
  EXPECT_EQ(one_value("json", "[1, 2]").spec(), "string[]");
  EXPECT_EQ(one_value("json", "[1, 2]")[0][""].text(), "[1, 2]");
  EXPECT_EQ(text(tag(0) + counted("[0,\"0\"]")), "[0,\"0\"]");
  EXPECT_EQ(text(tag(1) + two + counted("a\"") + counted("")), R"(["a\"",""])");
  EXPECT_EQ(text(tag(2) + two + little_bytes(1, 8) + little_bytes(~std::uint64_t{0}, 8)), "[1,-1]");
  EXPECT_EQ(text(tag(3) + two + little_bytes(0x4004'0000'0000'0000U, 8) + little_bytes(0, 8)),
            "[2.5,0.0]");
  EXPECT_EQ(text(tag(3) + two + little_bytes(0x7ff8'0000'0000'0000U, 8) +
                 little_bytes(0xfff0'0000'0000'0000U, 8)),
            "[NaN,-Infinity]");
  EXPECT_EQ(text(tag(4) + two + tag(1) + tag(0)), "[true,false]");
  EXPECT_EQ(text(tag(5) + two + counted("k") + tag(11) + counted("l") + tag(7) + counted("v")),
            R"({"k":null,"l":"v"})");
  EXPECT_EQ(
      text(tag(6) + two + little_bytes(1, 4) + counted("k") + tag(0x11) + counted("v") + tag(0x10)),
      R"([{"k":"v"},{"k":null}])");
  EXPECT_EQ(text(tag(8) + little_bytes(7, 8)), "7");
  EXPECT_EQ(text(tag(10) + tag(1)), "true");
  EXPECT_EQ(text(""), "ends within a nested value");
  EXPECT_EQ(text(tag(12)), "has a nested value of the unknown kind 12");
  EXPECT_EQ(text(tag(11) + "x"), "has bytes after its nested value");
  EXPECT_EQ(text(tag(1) + little_bytes(0xffff'ffff, 4)), "ends within a nested value");
  EXPECT_EQ(text(tag(7) + counted("\xff")), "has a text that is not UTF-8");
  EXPECT_EQ(text("[\xff]"), "has JSON that is not UTF-8");
  EXPECT_THAT(text(tag(6) + little_bytes(0xffff'ffff, 4) + little_bytes(0, 4)),
              HasSubstr("dicts without keys"));
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += tag(5) + little_bytes(1, 4) + counted("k");
  EXPECT_EQ(text(deep + tag(11)), "nests too deep");
}

TEST(LitDataTest, SizesThatDisagreeWithTheItemFail) {
  const RecordKind kind =
      kind_of(litdata_dict({{"a", litdata_leaf()}, {"b", litdata_leaf()}}), {"str", "bytes"});
  const auto failure = [&kind](const std::string& bytes) {
    return TextRecords(kind, litdata_chunk({bytes})).failure(0);
  };
  EXPECT_THAT(failure("1234567"), HasSubstr("the item ends within its sizes"));
  EXPECT_THAT(failure(little_bytes(1, 4) + little_bytes(3, 4) + "abc"),
              HasSubstr("field \"b\" should have 3 bytes, and the item ends after 2"));
  EXPECT_THAT(failure(little_bytes(0xffff'ffff, 4) + little_bytes(3, 4) + "abc"),
              HasSubstr("field \"a\" should have 4294967295 bytes"));
  EXPECT_THAT(failure(litdata_item({"a", "b"}) + "c"),
              HasSubstr("the item has 1 bytes after its values"));
}

TEST(LitDataTest, ItemsMayBeCompressedEachForItself) {
  if (!can_decompress(Compression::zstd)) GTEST_SKIP() << "built without zstd";
  Json index = index_of(kSpec, kSerializers);
  index["config"]["compression"] = "zstd";
  index["config"]["compression_level"] = "sample";
  const std::string packed = for_tests::stored_zstd(item(40'000));
  const TextRecords records(litdata_kind(parse(index), {}),
                            litdata_chunk({packed, item(2), packed.substr(0, packed.size() - 3)}));
  EXPECT_EQ(records[0]["m/y"].text(), std::string(120'000, 'i'));
  EXPECT_EQ(records[1]["m/y"].text(), "iiiiii");
  EXPECT_NE(records.failure(2), "no failure");
}

TEST(LitDataTest, PiecesOfAnySizeGiveTheSameItems) {
  const std::vector<std::string> items = {item(0), item(3), item(1)};
  const std::string chunk = litdata_chunk(items);
  for (std::size_t bytes = 1; bytes <= chunk.size(); ++bytes) {
    const Scanned found = scan(chunk, bytes);
    EXPECT_EQ(found.records, items) << bytes;
    EXPECT_THAT(found.damage, IsEmpty());
  }
  EXPECT_THAT(scan(litdata_chunk({})).records, IsEmpty());
}

TEST(LitDataTest, OnlyTheOffsetsOfAChunkAreScanned) {
  const std::string chunk = litdata_chunk({item(1), item(2)});
  std::vector<std::uint64_t> starts;
  EXPECT_EQ(make_litdata_scanner()->scan(0, chunk.substr(0, 16), starts), RecordScanner::kRest);
}

TEST(LitDataTest, WrongOffsetsAreDamage) {
  const std::string chunk = litdata_chunk({item(1), item(2)});
  for (std::size_t bytes = 1; bytes < chunk.size(); ++bytes) {
    const Scanned cut = scan(chunk.substr(0, bytes));
    EXPECT_THAT(cut.damage, testing::Not(IsEmpty()));
    EXPECT_THAT(cut.records, SizeIs(1));
  }
  EXPECT_THAT(scan("").damage, HasSubstr("ends within its offsets"));
  EXPECT_THAT(scan(chunk + "x").damage, HasSubstr("its items end at byte"));
  const auto changed = [&](std::size_t at, std::uint64_t value) {
    std::string text = chunk;
    text.replace(at, 4, little_bytes(value, 4));
    return scan(text, 5).damage;
  };
  EXPECT_THAT(changed(0, 0xffff'ffff), HasSubstr("ends within its offsets"));
  EXPECT_THAT(changed(4, 15), HasSubstr("its items begin at byte 15, and its offsets end at 16"));
  EXPECT_THAT(changed(8, 16), HasSubstr("item 0, at byte 16, has a wrong end: 16"));
  EXPECT_THAT(changed(8, 15), HasSubstr("item 0, at byte 16, has a wrong end: 15"));
  EXPECT_THAT(changed(8, 0xffff'ffff), HasSubstr("item 0, at byte 16, has a wrong end"));
}

TEST(LitDataTest, TokensAreDocumentsOrWindowsOfAllThatFollow) {
  Json index = index_of(litdata_leaf(), {"no_header_tensor:16"});
  index["chunks"][0]["dim"] = 5;
  index["config"]["item_loader"] = "TokensLoader";
  const auto token = [](std::uint64_t value) { return little_bytes(value, 4); };
  const std::string chunk = litdata_chunk({token(0) + token(1) + token(2), token(3) + token(4)});
  const TextRecords documents(litdata_kind(parse(index), {}), chunk);
  EXPECT_EQ(documents.spec(), "i32[?]");
  EXPECT_THAT(documents[1][""].values<std::int32_t>(), ElementsAre(3, 4));
  LitDataOptions options;
  options.length = 2;
  const TextRecords windows(litdata_kind(parse(index), options), chunk);
  EXPECT_EQ(windows.spec(), "i32[2]");
  ASSERT_EQ(windows.size(), 2U);
  EXPECT_THAT(windows[1][""].values<std::int32_t>(), ElementsAre(2, 3));
  options.length = 6;
  EXPECT_EQ(TextRecords(litdata_kind(parse(index), options), chunk).size(), 0U);
  options.length = std::uint64_t{1} << 40;
  EXPECT_THAT([&] { litdata_kind(parse(index), options); },
              ThrowsMessage<ConfigError>(HasSubstr("more than a chunk can have")));
  options.length = 2;
  EXPECT_THAT([&] { kind_of(litdata_leaf(), {"no_header_tensor:16"}, options); },
              ThrowsMessage<ConfigError>(HasSubstr("`length` is for chunks of tokens")));
}

TEST(LitDataTest, AnIndexThatIsNoneIsRefusedWithTheReason) {
  const auto refused = [](const std::string& text) {
    try {
      parse_litdata_index(text, "data/index.json");
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.message(),
                  StartsWith("from_litdata: data/index.json is no index of LitData"));
      return error.message();
    }
    return std::string("nothing");
  };
  const Json good = index_of(kSpec, kSerializers);
  EXPECT_EQ(refused(good.dump()), "nothing");
  EXPECT_THAT(refused("{"), HasSubstr("not JSON"));
  EXPECT_THAT(refused("[]"), HasSubstr("type"));
  EXPECT_THAT(refused("{}"), HasSubstr("config"));
  const auto with = [&good](const char* path, const Json& value) {
    Json json = good;
    json[Json::json_pointer(path)] = value;
    return json.dump();
  };
  const auto spec = [&](const Json& node) {
    return with("/config/data_spec", Json::array({1, node}).dump());
  };
  EXPECT_THAT(refused(with("/chunks", Json::array())), HasSubstr("lists no chunks"));
  EXPECT_THAT(refused(with("/chunks/0/chunk_size", -1)), HasSubstr("whole number"));
  EXPECT_THAT(refused(with("/chunks/0/chunk_bytes", "many")), HasSubstr("whole number"));
  for (const char* name : {"/etc/a.bin", "../a.bin", "a/../../b.bin", ""})
    EXPECT_THAT(refused(with("/chunks/0/filename", name)),
                HasSubstr("not a name below its folder"));
  EXPECT_THAT(refused(with("/chunks/0/dim", 3)), HasSubstr("items several values"));
  EXPECT_THAT(
      refused(
          with("/chunks/1",
               Json({{"filename", "b.bin"}, {"chunk_bytes", 1}, {"chunk_size", 1}, {"dim", 1}}))),
      HasSubstr("\"b.bin\" has tokens, unlike the first"));
  EXPECT_THAT(refused(with("/config/encryption", {{"algorithm", "fernet"}})),
              HasSubstr("encrypted"));
  EXPECT_THAT(refused(with("/config/item_loader", "ParquetLoader")), HasSubstr("Parquet"));
  EXPECT_THAT(refused(with("/config/item_loader", "Mine")), HasSubstr("item_loader is \"Mine\""));
  EXPECT_THAT(refused(with("/config/data_format", {"int"})),
              HasSubstr("data_spec has 4 values, and its data_format 1"));
  EXPECT_THAT(refused(with("/config/data_spec", "[2, {}]")), HasSubstr("data_spec is 2, not 1"));
  EXPECT_THAT(refused(with("/config/data_spec", "[1")), HasSubstr("data_spec is not JSON"));
  EXPECT_THAT(refused(spec(litdata_tuple({litdata_leaf()}, "collections.deque"))),
              HasSubstr("contain a collections.deque"));
  Json dict = litdata_dict({{"a", litdata_leaf()}});
  dict["context"] = "[1]";
  EXPECT_THAT(refused(spec(dict)), HasSubstr("a key of a dict is 1"));
  dict["context"] = "[\"a\", \"b\"]";
  EXPECT_THAT(refused(spec(dict)), HasSubstr("not as many keys as values"));
  dict["context"] = "a";
  EXPECT_THAT(refused(spec(dict)), HasSubstr("not as many keys as values"));
}

TEST(LitDataTest, OlderIndexesHaveFewerMembers) {
  Json index = index_of(litdata_tuple({litdata_leaf()}, "builtins.list"), {"str"});
  for (const char* key : {"compression_level", "compression_batch_size", "ipc_compression",
                          "item_loader", "encryption"})
    index["config"].erase(key);
  index["chunks"][0].erase("dim");
  const LitDataIndex read = parse(index);
  EXPECT_EQ(TextRecords(litdata_kind(read, {}), litdata_chunk({litdata_item({"x"})})).spec(),
            "(string[])");
}

TEST(LitDataTest, TwoFieldsOfOnePathAreRefused) {
  const Json spec =
      litdata_dict({{"a/b", litdata_leaf()}, {"a", litdata_dict({{"b", litdata_leaf()}})}});
  EXPECT_THAT([&] { kind_of(spec, {"int", "int"}); },
              ThrowsMessage<ConfigError>(HasSubstr("two fields have the path \"a/b\"")));
}

}  // namespace
}  // namespace penstock
